"""Bisection finds the step that made a run fail, if outcomes are deterministic."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tracefork_core import UsageError, record
from tracefork_core.blaming.bisect import bisect
from tracefork_core.blaming.trials.trial import branch_name
from tracefork_testkit import ModelRequest, ProviderServer, Reply

from .agent import ask

STEPS = 12


class Certain:
    """A model that fails at one step in the first run only, and else repeats what it was told."""

    def __init__(self, wrong: int) -> None:
        self.wrong = wrong
        self.asked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        step, before = request.last_user_text.split(": ")
        first, self.asked = self.asked < STEPS, self.asked + 1
        return Reply("deny" if first and int(step) == self.wrong else before)


def agent() -> str:
    said = "refund"
    with httpx2.Client(verify=False, timeout=30) as client:
        for step in range(STEPS):
            said = ask(client, f"{step}: {said}")
    return said


def is_refund(answer: object) -> bool:
    return answer == "refund"


@pytest.fixture
def tape(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Record a run that fails at the step that the parameter names."""
    path = tmp_path / "run.tape"
    with ProviderServer(Certain(request.param)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "PROVIDER", server.url)
        with record(path):
            agent()
        yield path


@pytest.mark.parametrize(("tape", "wrong"), [(0, 0), (5, 5), (11, 11)], indirect=["tape"])
def test_bisect_finds_the_step_in_few_forks(tape: Path, wrong: int) -> None:
    """Both ends and about log2(12) positions take at most six forks for twelve steps."""
    found = bisect(tape, agent, is_refund)
    assert (found.unit, found.forks <= 6) == (wrong, True)
    assert [one.name for one in tape.parent.iterdir()] == [tape.name]


@pytest.mark.parametrize("tape", [5], indirect=True)
@pytest.mark.parametrize("error", [LookupError(), SystemExit(0), asyncio.CancelledError()])
def test_bisect_skips_positions_that_cannot_be_graded(tape: Path, error: BaseException) -> None:
    """An oracle that raises gives no grade. The result is the step, or a range around it."""
    graded = 0

    def oracle(answer: object) -> bool:
        nonlocal graded
        graded += 1
        if graded == 3:
            raise error
        return answer == "refund"

    found = bisect(tape, agent, oracle)
    assert found.skipped == (6,)
    assert found.unit is not None
    assert found.first is not None
    assert found.first <= 5 <= found.unit


@pytest.mark.parametrize("tape", [5], indirect=True)
def test_bisect_names_no_step_if_the_run_passes_or_always_fails(tape: Path) -> None:
    """A good recorded run is refused; a run that fails from the start has no step to blame."""
    with pytest.raises(UsageError, match="nothing to bisect"):
        bisect(tape, agent, lambda answer: True)
    assert bisect(tape, agent, lambda answer: False).unit is None


def test_a_trial_never_has_the_name_of_the_tape() -> None:
    """`t2.tape` was replaced by the second trial of its own blame."""
    names = ["t2.tape", "t.tape", "run~2.tape"]
    assert not [name for name in names for n in range(9) if branch_name(name, n) == name]
