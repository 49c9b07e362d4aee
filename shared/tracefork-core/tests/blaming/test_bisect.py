"""Where ends are certain, the step that a run was lost at is found by halves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tracefork_core import UsageError, record
from tracefork_core.blaming.bisect import bisect
from tracefork_testkit import ModelRequest, ProviderServer, Reply

from .agent import ask

STEPS = 12


class Certain:
    """Goes wrong at one step the first time, and never again; passes on what was said before."""

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
    """Record a run that goes wrong at the step that the test is given."""
    path = tmp_path / "run.tape"
    with ProviderServer(Certain(request.param)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "PROVIDER", server.url)
        with record(path):
            agent()
        yield path


@pytest.mark.parametrize(("tape", "wrong"), [(0, 0), (5, 5), (11, 11)], indirect=["tape"])
def test_the_step_is_found_in_few_forks(tape: Path, wrong: int) -> None:
    """Both ends and about log2(12) positions: no more than six forks for twelve steps."""
    found = bisect(tape, agent, is_refund)
    assert (found.unit, found.forks <= 6) == (wrong, True)
    assert [one.name for one in tape.parent.iterdir()] == [tape.name]


@pytest.mark.parametrize("tape", [5], indirect=True)
@pytest.mark.parametrize("error", [LookupError(), SystemExit(0), asyncio.CancelledError()])
def test_what_cannot_be_graded_is_skipped(tape: Path, error: BaseException) -> None:
    """An oracle that raises says nothing: the step is found around it, or a range that holds it."""
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
def test_a_run_that_passes_or_fails_anyway_has_no_such_step(tape: Path) -> None:
    """Good as recorded: nothing to bisect. Bad from the start: no step is to blame."""
    with pytest.raises(UsageError, match="nothing to bisect"):
        bisect(tape, agent, lambda answer: True)
    assert bisect(tape, agent, lambda answer: False).unit is None
