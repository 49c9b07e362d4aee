"""New random values after a fork point, and what branches of such a branch draw."""

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
    """Put each random value into a prompt, and return the values."""
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


def test_redraw_gives_new_values_after_the_fork_point(tape: Path, url: str) -> None:
    """The branch replays with the new values."""
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
def test_a_redrawn_branch_can_be_forked(
    tape: Path, url: str, at: int, then: int, redraw: bool
) -> None:
    """The fork continues with the values of that branch, or redraws itself, and replays."""
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


def test_the_clock_of_a_fork_continues_from_its_redrawn_branch(tape: Path, url: str) -> None:
    """A fork that makes more calls continues that clock; only a redraw uses the real time."""

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


def test_each_generation_redraws_from_its_own_fork_point(tape: Path, url: str) -> None:
    """Before it, the values are those of the parent."""
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
