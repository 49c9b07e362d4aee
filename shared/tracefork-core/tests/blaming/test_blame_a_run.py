"""Blame runs forks of an agent over a real socket, within a budget, and journals them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tracefork_core import UsageError, record
from tracefork_core.adapters import begin_step, current_step, end_step
from tracefork_core.blaming.blame import blame
from tracefork_core.blaming.report import sentence
from tracefork_core.blaming.trials.budget import Budget
from tracefork_core.blaming.trials.runner import Progress
from tracefork_core.blaming.trials.trial import VerdictError, branch_name
from tracefork_core.blaming.trials.trial_journal import JOURNAL, read
from tracefork_testkit import ProviderServer

from .agent import STEPS, Desk, agent, ask, good

ROOT = 3


@pytest.fixture
def desk() -> Desk:
    return Desk(ROOT)


@pytest.fixture
def tape(tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Record a run that fails; its provider keeps running."""
    path = tmp_path / "run.tape"
    with ProviderServer(desk) as server:
        monkeypatch.setenv("PROVIDER", server.url)
        with record(path):
            assert not good(agent())
        yield path


def each() -> Iterator[object]:
    yield agent()


def test_blame_refuses_agents_and_oracles_that_are_not_functions(tape: Path) -> None:
    """Only the command line takes an oracle as text. Nothing is run or written before that."""
    with pytest.raises(UsageError, match="oracle of a blame is a function, not 'exit'"):
        blame(tape, agent, "exit")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="agent of a blame is a function, not None"):
        blame(tape, None, good)  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match="the agent each is a generator, and calling it runs nothing"
    ):
        blame(tape, each, good)
    assert not (tape.parent / "run.tape.blame").exists()


@pytest.mark.parametrize("value", [None, "yes", 1])
def test_an_oracle_must_return_true_or_false(tape: Path, desk: Desk, value: object) -> None:
    """The recorded outcome is graded first, so a bad oracle costs no call and leaves no journal."""
    asked = desk.asked
    with pytest.raises(VerdictError) as error:
        blame(tape, agent, lambda outcome: value)
    assert (error.value.exit_code, desk.asked) == (UsageError.exit_code, asked)
    assert repr(value) in str(error.value)
    assert blame(tape, agent, good, budget="0 calls").draws


def test_blame_names_the_step_that_made_a_run_fail(tape: Path, desk: Desk) -> None:
    """It names the root and no step before or after it; every live call is in the ledger."""
    seen: list[Progress] = []
    report = blame(tape, agent, good, watch=seen.append)
    found = report.result
    assert (found.verdict.kind, found.verdict.units) == ("single", (ROOT,))
    assert found.decisive is not None
    assert found.decisive.unit == ROOT
    assert found.ledger.live_calls == desk.asked - STEPS == seen[-1].calls
    assert found.ledger.forks == seen[-1].forks
    passed = [control.name for control in found.controls if control.passed]
    assert passed == ["replay", "placebo", "null step", "drift"]


def test_a_budget_is_never_exceeded(tape: Path, desk: Desk) -> None:
    """A verdict cut short is undecided, and the ledger has exactly the calls made."""
    for calls in (0, 7, 20):
        before = desk.asked
        report = blame(
            tape, agent, good, budget=Budget(calls=calls), folder=tape.parent / str(calls)
        )
        assert desk.asked - before <= calls
        assert report.result.verdict.kind == "undecided"
        assert report.result.ledger.live_calls == desk.asked - before


def test_the_ledger_includes_calls_of_forks_that_died(tape: Path) -> None:
    """They count even if the budget does not allow another attempt, since they were paid for."""
    folder = tape.with_name("run.tape.blame")
    report = blame(tape, agent, good, budget="20 calls")
    live = next(draw for draw in report.draws if draw.calls)
    names = [branch_name(str(tape), number) for number in (live.number, len(report.draws))]
    shutil.copy(folder / names[0], folder / names[1])
    again = blame(tape, agent, good, budget="20 calls", resume=True)
    assert again.draws == report.draws
    assert again.result.ledger.live_calls == report.result.ledger.live_calls + live.calls


def test_resume_continues_a_stopped_blame(tape: Path, desk: Desk) -> None:
    """No journaled trial is run again, and a finished blame makes no call."""

    def stop(progress: Progress) -> None:
        if progress.forks == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        blame(tape, agent, good, watch=stop)
    folder = tape.with_name("run.tape.blame")
    assert len(read(folder / JOURNAL).trials) == 12
    with pytest.raises(UsageError, match="started before"):
        blame(tape, agent, good)
    with (folder / JOURNAL).open("ab") as journal:
        journal.write(b'{"trial":{"numb')  # A killed process leaves an incomplete line.
    report = blame(tape, agent, good, resume=True)
    assert report.result.verdict.units == (ROOT,)
    assert report.result.ledger.live_calls == desk.asked - STEPS
    asked = desk.asked
    assert blame(tape, agent, good, resume=True) == report
    assert desk.asked == asked


def test_a_good_run_is_not_blamed_unless_credit_is_requested(tape: Path) -> None:
    """The verdict is `passed` at no cost; with credit, blame names the step that saved the run."""
    report = blame(tape, agent, lambda answer: "deny" in str(answer))
    assert report.result.verdict.kind == "passed"
    assert report.result.ledger.live_calls == 0
    credit = blame(
        tape,
        agent,
        lambda answer: "deny" in str(answer),
        credit=True,
        folder=tape.parent / "credit",
    )
    assert credit.result.verdict.units == (ROOT,)
    assert "saved the run" in sentence(credit)


def in_tasks() -> str:
    """Run the agent in three tasks of two steps each."""
    said = "begin"
    with httpx2.Client(verify=False, timeout=30) as client:
        for first, task in ((0, "research"), (2, "analyse"), (4, "write")):
            step = begin_step("task", task)
            before = current_step.set(step)
            for number in (first, first + 1):
                said = ask(client, f"step {number} after: {said}")
            current_step.reset(before)
            end_step(step)
    return said


def test_blame_by_task_compares_tasks_first(tmp_path: Path, tape: Path) -> None:
    """The curve has one position per task, and the report has the effect of each."""
    path = tmp_path / "tasks" / "run.tape"
    path.parent.mkdir()
    with record(path):
        assert in_tasks() == "refund"
    report = blame(path, in_tasks, lambda said: said == "deny", by="task", budget="12 calls")
    assert report.header.groups == ((0, 1), (2, 3), (4, 5))
    assert {one.part.step: one.part.units for one in report.parts} == {
        ("research",): (0, 1),
        ("analyse",): (2, 3),
        ("write",): (4, 5),
    }
    for wrong in ({"by": "node"}, {"by": "task", "groups": [[0], [1, 2, 3, 4, 5]]}):
        with pytest.raises(UsageError, match=r"no step of kind 'node'|exclude one another"):
            blame(path, in_tasks, good, folder=tmp_path / "x", **wrong)


def counting() -> str:
    """Run the agent, and count tokens before each question and after the last."""
    said = "begin"
    with httpx2.Client(verify=False, timeout=30) as client:
        for step in range(STEPS):
            count(client, f"step {step} after: {said}")
            said = ask(client, f"step {step} after: {said}")
        count(client, said)
    return said


def count(client: httpx2.Client, text: str) -> None:
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": text}]}
    client.post(f"{os.environ['PROVIDER']}/v1/messages/count_tokens", json=body)


def test_token_counts_are_never_suspected(tmp_path: Path, tape: Path, desk: Desk) -> None:
    """The last question is the graded answer, and token counts are not calls and cost nothing."""
    path = tmp_path / "counting.tape"
    with record(path):
        counting()
    before = desk.asked
    report = blame(path, counting, lambda answer: False, budget="20 calls")
    counts = frozenset(range(0, 2 * STEPS + 1, 2))
    assert report.header.settings.auxiliary == counts
    assert report.header.settings.answers == {2 * STEPS - 1}
    assert 0 < report.result.ledger.live_calls == desk.asked - before
    assert all(report.units[unit].usd == 0 for unit in counts)
