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
    """Always name the first unit, and leave lost forks out of the interval."""
    try:
        trials = yield [Probe(frozenset())] * 40
    except Exhausted:
        return Claim("single", (0,), (), 0)
    failed = [trial.failed for trial in trials]
    seen = failed.count(True), failed.count(False), failed.count(None)
    rate = seen[0] / max(1, seen[0] + seen[1])
    narrow = Interval("curve", 0, rate, rate, seen=seen)
    return Claim("single", (0,), (), 0, intervals=(narrow,))


def test_the_group_audit_passes_only_engines_that_find_the_group() -> None:
    """An engine with many uniform forks passes, one that blames every unit does not."""
    good, bad = grouped(uniform(60), range(4)), grouped(lying, range(2))
    assert (good.holds, good.runs, good.misses) == (True, 8, ())
    assert (bad.holds, bad.runs, len(bad.misses)) == (False, 4, 4)


def test_the_budget_audit_fails_verdicts_on_a_spent_budget() -> None:
    """Only `undecided` is right after the budget ran out."""
    assert budgeted(uniform(10), range(2)).holds
    bad = budgeted(claiming, range(2))
    assert not bad.holds
    assert bad.misses[0] == "echo/16/0 with 0 calls"
    assert bad.runs == 2 * len(BUDGETS)


def test_the_audit_of_lost_forks_fails_intervals_that_ignore_them() -> None:
    """A verdict based on such intervals fails too."""
    bad = undefined(claiming, range(2))
    assert not bad.holds
    assert len(bad.misses) == bad.runs == 6


class Doubling(HttpSimulation):
    """A simulation that sends one request too many for step 15."""

    def _ask(self, step: int, state: int) -> int:
        if step == 15:
            super()._ask(step, state)
        return super()._ask(step, state)


def test_the_transport_audit_counts_calls_fork_by_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that the simulation does not know is a miss, and so is a missing HTTP library."""
    good = transported(uniform(3), range(2))
    assert (good.holds, good.misses) == (True, ())
    assert good.runs == 2 * (3 * 17 + 1)
    monkeypatch.setattr(audits, "HttpSimulation", Doubling)
    bad = transported(uniform(3), range(1))
    assert not bad.holds
    assert len(bad.misses) == 3 * 16  # All forks but those that keep every step.
    monkeypatch.setattr(audits, "http_library", lambda: None)
    assert transported(uniform(3), range(1)).misses == ("pip install httpx2 for this",)


def test_blame_passes_the_audits() -> None:
    """The engine of blame runs on one run of each audit."""
    for audit in (grouped, budgeted, undefined, transported):
        found = audit(blame_engine, range(1))
        assert found.holds, found.misses
