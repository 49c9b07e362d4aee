from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from tracefork_core.bench import audits
from tracefork_core.bench.audits import BUDGETS, budgeted, grouped, transported, undefined
from tracefork_core.bench.driver import Asking, Claim, Interval, blame_engine
from tracefork_core.bench.simulation import HttpSimulation
from tracefork_core.blaming.engine.probe import Exhausted, Probe

from .engines import Reach, lying, uniform


def claiming(costs: Sequence[float], random: Random, reach: Reach) -> Asking:
    """Name the first unit, whatever comes, and hide what was lost."""
    try:
        trials = yield [Probe(frozenset())] * 40
    except Exhausted:
        return Claim("single", (0,), (), 0)
    failed = [trial.failed for trial in trials]
    seen = failed.count(True), failed.count(False), failed.count(None)
    rate = seen[0] / max(1, seen[0] + seen[1])
    narrow = Interval("curve", 0, rate, rate, seen=seen)
    return Claim("single", (0,), (), 0, intervals=(narrow,))


def test_the_group_is_found_in_either_order_of_two_branches() -> None:
    """By many uniform forks it is, by an engine that blames everybody it is not."""
    good, bad = grouped(uniform(60), range(4)), grouped(lying, range(2))
    assert (good.holds, good.runs, good.misses) == (True, 8, ())
    assert (bad.holds, bad.runs, len(bad.misses)) == (False, 4, 4)


def test_a_verdict_on_a_spent_budget_is_a_miss() -> None:
    """Undecided is honest; to name somebody all the same is not."""
    assert budgeted(uniform(10), range(2)).holds
    bad = budgeted(claiming, range(2))
    assert not bad.holds
    assert bad.misses[0] == "echo/16/0 with 0 calls"
    assert bad.runs == 2 * len(BUDGETS)


def test_what_is_lost_has_to_show() -> None:
    """Intervals that leave lost forks out are a miss, and so is a verdict that stands on them."""
    bad = undefined(claiming, range(2))
    assert not bad.holds
    assert len(bad.misses) == bad.runs == 6


class Doubling(HttpSimulation):
    """An agent that asks once more than its simulation knows, wherever it asks for step 15."""

    def _ask(self, step: int, state: int) -> int:
        if step == 15:
            super()._ask(step, state)
        return super()._ask(step, state)


def test_calls_are_counted_where_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork by fork they are what the simulation says; a call that it does not know of is a miss."""
    good = transported(uniform(3), range(2))
    assert (good.holds, good.misses) == (True, ())
    assert good.runs == 2 * (3 * 17 + 1)
    monkeypatch.setattr(audits, "HttpSimulation", Doubling)
    bad = transported(uniform(3), range(1))
    assert not bad.holds
    assert len(bad.misses) == 3 * 16  # All but those that keep every step.
    monkeypatch.setattr(audits, "http_library", lambda: None)
    assert transported(uniform(3), range(1)).misses == ("pip install httpx2 for this",)


def test_blame_passes_the_audits() -> None:
    """The real engine, on one run each."""
    for audit in (grouped, budgeted, undefined, transported):
        found = audit(blame_engine, range(1))
        assert found.holds, found.misses
