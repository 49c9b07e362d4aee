"""Calls of a judge count towards the budget, like all other calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tracefork_core import UsageError
from tracefork_core.blaming.blame import blame
from tracefork_core.blaming.oracles.judge import Judge, UngradeableError
from tracefork_core.blaming.trials.budget import Budget
from tracefork_core.blaming.trials.runner import Progress
from tracefork_core.blaming.trials.spending import Spent
from tracefork_core.blaming.trials.trial import trial_number
from tracefork_core.providers import hosts

from . import drawing
from .drawn import QUICK, Drawing
from .grading import Bench


@pytest.fixture
def judge(endpoint: str) -> Judge:
    return Judge("It is a refund.", "gpt-5-mini", base_url=endpoint)


def telling() -> str:
    """Run the agent, and return another text in each trial, so that each is graded by a call."""
    return f"{drawing.agent()}, said by {trial_number.get()}"


def test_calls_of_a_judge_count_towards_a_call_budget(
    tape: Path, desk: Drawing, judge: Judge, bench: Bench
) -> None:
    """Agent and judge together stay within it; without room for a grade, no call is made."""
    for calls in (0, 14):
        asked = len(bench.seen) + desk.live
        folder = tape.parent / str(calls)
        report = blame(
            tape, telling, judge, budget=Budget(calls=calls), folder=folder, settings=QUICK
        )
        made = len(bench.seen) + desk.live - asked
        assert made <= calls
        assert report.grading is not None
        assert report.grading.calls + report.result.ledger.live_calls == made
        assert report.result.verdict.kind == "undecided"
    assert made > 8


def test_dollars_of_a_judge_count_towards_a_dollar_budget(
    tape: Path, desk: Drawing, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both need a price; without one, blame refuses before any call."""
    budget = Budget(usd=0.0006)
    with pytest.raises(UsageError, match="known price"):
        blame(tape, telling, judge, budget=budget, settings=QUICK)
    assert desk.live == 0
    monkeypatch.setitem(hosts._PROVIDERS, "127.0.0.1", "openai")
    seen: list[Progress] = []
    folder = tape.parent / "priced"
    report = blame(
        tape, telling, judge, budget=budget, folder=folder, settings=QUICK, watch=seen.append
    )
    ledger, grading = report.result.ledger, report.grading
    assert grading is not None
    assert grading.usd
    assert ledger.usd
    assert budget.usd is not None
    assert budget.usd / 3 < ledger.usd + grading.usd <= budget.usd
    assert seen[-1].usd == pytest.approx(ledger.usd + grading.usd)
    assert seen[-1].left == pytest.approx(budget.usd - ledger.usd - grading.usd)


def test_a_judge_never_exceeds_its_cap_of_calls(judge: Judge, bench: Bench, tmp_path: Path) -> None:
    """Calls of all threads and retries count."""
    bench.faults = 1
    placed = judge.placed(tmp_path)
    (tmp_path / "judge" / "calls").mkdir()
    (tmp_path / "judge" / "calls" / "0").touch()  # Left by a process that died before its call.
    capped, refusals = placed.capped(4), list[str]()

    def grade(end: int) -> bool | None:
        try:
            return capped(f"refund {end}")
        except UngradeableError as error:
            refusals.append(str(error))
            return None

    with ThreadPoolExecutor(4) as threads:
        grades = list(threads.map(grade, range(6)))
    assert len(bench.seen) == 3
    assert refusals == ["the budget allowed no more calls of the judge"] * grades.count(None)
    assert len(refusals) == 4
    assert capped.spent({}).total.calls == 4


def test_a_judge_estimates_the_cost_of_a_call_before_the_first(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It uses the size of its rubric, then the most expensive call; no tape is read twice."""
    monkeypatch.setitem(hosts._PROVIDERS, "127.0.0.1", "openai")
    placed = judge.placed(tmp_path)
    before = placed.spent({})
    assert before.total.calls == 0
    assert before.dearest.tokens > 100
    placed("refund " * 2000)
    known: dict[str, list[Spent]] = {}
    after = placed.spent(known)
    assert after.dearest.tokens == after.total.tokens > before.dearest.tokens
    assert before.dearest.usd
    assert after.dearest.usd
    assert after.dearest.usd > before.dearest.usd
    assert after.dearest.usd == after.total.usd
    assert len(known) == 1
    for tape in (tmp_path / "judge").glob("*.tape"):
        tape.write_bytes(b"")
    assert placed.spent(known).total.tokens == after.total.tokens
