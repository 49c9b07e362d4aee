"""What is drawn anew past a fork point, and what a branch of such a branch draws."""

from __future__ import annotations

import random
import time
import uuid
from pathlib import Path

import httpx2
import pytest

from tracefork_core import fork, record, replay

STEPS = 4

Drawn = list[tuple[int, uuid.UUID, float]]


def agent(url: str) -> Drawn:
    """Put what it draws into each prompt, and return it."""
    drawn: Drawn = []
    with httpx2.Client(verify=False) as client:
        for _ in range(STEPS):
            drawn.append((time.time_ns(), uuid.uuid4(), random.random()))
            asked = {"role": "user", "content": f"What of {drawn[-1]}?"}
            question = {"model": "m", "messages": [asked]}
            client.post(f"{url}/v1/chat/completions", json=question).raise_for_status()
    return drawn


def differ(ones: Drawn, others: Drawn) -> bool:
    return all(
        a != b
        for one, other in zip(ones, others, strict=True)
        for a, b in zip(one, other, strict=True)
    )


def assert_replays(tape: Path, url: str, drawn: Drawn) -> None:
    with replay(tape) as again:
        assert agent(url) == drawn
    assert (again.clock_misses, again.entropy_misses) == (0, 0)
    assert again.digest == again.tape.digest


def test_a_fork_draws_anew_on_demand(tape: Path, url: str) -> None:
    """Past the fork point other values, and the branch replays with them."""
    with record(tape):
        recorded = agent(url)
    with fork(tape, at=1, redraw=True) as branch:
        forked = agent(url)
    assert forked[:2] == recorded[:2]
    assert differ(forked[2:], recorded[2:])
    assert_replays(branch.path, url, forked)


@pytest.mark.parametrize("at", range(STEPS))
@pytest.mark.parametrize("then", range(STEPS))
@pytest.mark.parametrize("redraw", [False, True])
def test_a_branch_that_was_drawn_anew_is_forked(
    tape: Path, url: str, at: int, then: int, redraw: bool
) -> None:
    """It goes on with what that branch drew, or draws anew itself, and replays."""
    with record(tape):
        agent(url)
    with fork(tape, at=at, redraw=True) as child:
        before = agent(url)
    with fork(child.path, at=then, redraw=redraw) as grandchild:
        drawn = agent(url)
    assert drawn[: then + 1] == before[: then + 1]
    if redraw:
        assert differ(drawn[then + 1 :], before[then + 1 :])
    else:
        assert drawn == before
    assert_replays(grandchild.path, url, drawn)


def test_a_clock_goes_on_from_where_a_branch_was_that_was_drawn_anew(tape: Path, url: str) -> None:
    """Where the branch asked less, its clock goes on; only who draws anew takes the real time."""

    def longer(url: str) -> Drawn:
        return [*agent(url), *agent(url)]

    with record(tape):
        agent(url)
    with fork(tape, at=0, redraw=True) as child:
        before = agent(url)
    time.sleep(1)
    began = time.time_ns()
    with fork(child.path, at=STEPS - 1) as grandchild:
        drawn = longer(url)
    assert drawn[:STEPS] == before
    assert before[-1][0] < drawn[STEPS][0] < began
    with replay(grandchild.path):
        assert longer(url) == drawn


def test_a_branch_of_a_branch_of_a_branch_draws_from_each(tape: Path, url: str) -> None:
    """Each draws anew from its fork point on, and has before it what its parent drew."""
    with record(tape):
        before = agent(url)
    path = tape
    for at in range(STEPS - 1):
        with fork(path, at=at, redraw=True) as branch:
            drawn = agent(url)
        assert drawn[: at + 1] == before[: at + 1]
        assert differ(drawn[at + 1 :], before[at + 1 :])
        path, before = branch.path, drawn
    assert_replays(path, url, before)
