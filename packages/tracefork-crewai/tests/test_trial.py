"""Go on from a task of a recorded crew, and find the one that made it fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_core import Tape, UsageError
from tracefork_crewai import blame, fork
from tracefork_testkit import ModelRequest, ProviderServer, Reply


class Chain:
    """Says a letter after what the task before it said; one task is wrong the first time."""

    def __init__(self, wrong: str = "") -> None:
        self.asked: list[str] = []
        self._wrong = wrong
        self._times = 0

    def __call__(self, request: ModelRequest) -> Reply:
        said = request.last_user_text
        name = next(one for one in ("first", "second", "third", "apart") if f"do {one}" in said)
        self.asked.append(name)
        if name == self._wrong:
            self._times += 1
            if self._times % 40 == 1:
                return Reply(f"{name} is bad")
        return Reply(f"{name} is {'bad' if 'is bad' in said else 'good'}")


@pytest.fixture
def chain() -> Chain:
    return Chain("second")


@pytest.fixture
def server(chain: Chain) -> Iterator[ProviderServer]:
    with ProviderServer(chain) as server:
        yield server


@pytest.fixture
def make(crew: Callable[..., Any]) -> Callable[[], Any]:
    """Make a crew of three tasks in a row, and one that has nothing to do with them."""

    def new() -> Any:
        made = crew(first="do first", second="do second", apart="do apart", third="do third")
        _first, second, apart, third = made.tasks
        apart.context, third.context = [], [second]
        return made

    return new


def test_a_task_says_something_else(tape: Path, make: Callable[[], Any], chain: Chain) -> None:
    """What depends on it is asked live; what does not is answered from the tape, after it too."""
    with tracefork.record(tape):
        assert make().kickoff().raw == "third is bad"
    del chain.asked[:]
    with fork(tape, at_task="second", replace="second is good") as branch:
        assert make().kickoff().raw == "third is good"
    assert chain.asked == ["third"]
    assert (branch.replayed, branch.given, branch.live) == (2, 1, 1)
    with tracefork.replay(branch.path):
        assert make().kickoff().raw == "third is good"


@pytest.mark.parametrize("task", ["second", 1])
def test_a_task_is_done_again(
    tape: Path, make: Callable[[], Any], chain: Chain, task: str | int
) -> None:
    """Live, and what depends on it with it."""
    with tracefork.record(tape):
        make().kickoff()
    del chain.asked[:]
    with fork(tape, at_task=task):
        assert make().kickoff().raw == "third is good"
    assert chain.asked == ["second", "third"]


def test_no_such_task_is_said(tape: Path, make: Callable[[], Any]) -> None:
    """With the names of those that there are."""
    with tracefork.record(tape):
        make().kickoff()
    for task in ("fourth", 4, -1, "second:2", "second:0"):
        with pytest.raises(UsageError, match="first, second, apart, third"):
            fork(tape, at_task=task)


@pytest.mark.many_processes
def test_blame_names_the_task(tape: Path, make: Callable[[], Any]) -> None:
    """With how much it did; the task after it passed it on, and the one beside it is innocent."""
    with tracefork.record(tape):
        make().kickoff()
    report = blame(tape, make, lambda output: "good" in output.raw)
    named = report.parts[0]
    assert named.is_named
    assert named.part.step == ("desk", "second")
    assert named.effect == 1.0
    assert report.result.verdict.units == (1,)
    assert report.result.verdict.mediators == (3,)
    assert [one.part.step[-1] for one in named.parts] == ["Second"]
    with Tape.open(tape) as opened:
        assert opened.exchanges[1].step_path[:3] == ("desk", "second", "Second")
