"""Fork a recorded crew at a task, and find the task that made it fail."""

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
    """Answers each task from the answer before it; one task is wrong the first time."""

    def __init__(self, wrong: str = "") -> None:
        self.asked: list[str] = []
        self._wrong = wrong
        self._times = 0

    def __call__(self, request: ModelRequest) -> Reply:
        prompt = request.last_user_text
        tasks = ("first", "second", "third", "apart")
        name = next(task for task in tasks if f"do {task}" in prompt)
        self.asked.append(name)
        if name == self._wrong:
            self._times += 1
            if self._times % 40 == 1:
                return Reply(f"{name} is bad")
        return Reply(f"{name} is {'bad' if 'is bad' in prompt else 'good'}")


@pytest.fixture
def chain() -> Chain:
    return Chain("second")


@pytest.fixture
def server(chain: Chain) -> Iterator[ProviderServer]:
    with ProviderServer(chain) as server:
        yield server


@pytest.fixture
def make(crew: Callable[..., Any]) -> Callable[[], Any]:
    """Make a crew of three tasks in a row, and one that does not depend on them."""

    def new() -> Any:
        made = crew(first="do first", second="do second", apart="do apart", third="do third")
        _first, second, apart, third = made.tasks
        apart.context, third.context = [], [second]
        return made

    return new


def test_fork_replaces_the_answer_of_a_task(
    tape: Path, make: Callable[[], Any], chain: Chain
) -> None:
    """What depends on it runs live. Everything else is answered from the tape, after it too."""
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
def test_fork_runs_a_task_again(
    tape: Path, make: Callable[[], Any], chain: Chain, task: str | int
) -> None:
    """It runs live, and so does what depends on it."""
    with tracefork.record(tape):
        make().kickoff()
    del chain.asked[:]
    with fork(tape, at_task=task):
        assert make().kickoff().raw == "third is good"
    assert chain.asked == ["second", "third"]


def test_fork_at_an_unknown_task_lists_the_tasks(tape: Path, make: Callable[[], Any]) -> None:
    """An unknown name, a position out of range, and a repetition that does not exist."""
    with tracefork.record(tape):
        make().kickoff()
    for task in ("fourth", 4, -1, "second:2", "second:0"):
        with pytest.raises(UsageError, match="first, second, apart, third"):
            fork(tape, at_task=task)


@pytest.mark.many_processes
def test_blame_names_the_task(tape: Path, make: Callable[[], Any]) -> None:
    """With its effect. The task after it passed the error on; the one beside it is not blamed."""
    with tracefork.record(tape):
        make().kickoff()
    report = blame(tape, make, lambda output: "good" in output.raw)
    named = report.parts[0]
    assert named.is_named
    assert named.part.step == ("desk", "second")
    assert named.effect == 1.0
    assert report.result.verdict.units == (1,)
    assert report.result.verdict.mediators == (3,)
    assert [part.part.step[-1] for part in named.parts] == ["Second"]
    with Tape.open(tape) as opened:
        assert opened.exchanges[1].step_path[:3] == ("desk", "second", "Second")
