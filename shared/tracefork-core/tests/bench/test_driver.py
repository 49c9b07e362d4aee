from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tracefork_core.bench.cases import CASES
from tracefork_core.bench.driver import Asking, Claim, Interval, drive
from tracefork_core.bench.simulation import Simulation
from tracefork_core.blaming.engine.probe import Probe

from .engines import Reach, knowing, uniform

INSTANCE = CASES["echo"].instance(8, 3)


def simulation() -> Simulation:
    return Simulation(INSTANCE.recorded, Random(5))


def test_calls_are_counted_by_phase() -> None:
    """A replay is free, a fork from the start costs every unit, with one unit held one less."""
    one = simulation()
    claim, ledger = drive(knowing(INSTANCE), one, Random(0))
    assert ledger.calls == {"replay": 0, "localise": 8, "repair": 7}
    assert (ledger.total, ledger.forks, ledger.exhausted) == (one.calls, 3, False)
    assert claim.kind == "single"


def test_no_call_is_made_above_a_budget() -> None:
    """The budget is kept to the call, and the engine gets the trials of its last batch."""
    whole = 3 * sum(range(9))
    for budget in range(0, whole + 1, 7):
        one = simulation()
        claim, ledger = drive(uniform(3), one, Random(0), budget)
        assert one.calls <= budget
        assert budget - one.calls < 8
        assert ledger.exhausted == (claim.kind == "undecided") == (budget < whole)
    claim, ledger = drive(uniform(3), simulation(), Random(0), whole)
    assert (ledger.exhausted, ledger.total) == (False, whole)


def test_the_trials_of_a_batch_that_is_cut_short_reach_the_engine() -> None:
    """The budget pays for two of three forks, and the engine gets those two trials."""
    claim, ledger = drive(uniform(3), simulation(), Random(0), 16)
    assert (claim.decisive, ledger.forks, ledger.total) == (2, 2, 16)


def test_trials_arrive_in_the_order_requested() -> None:
    """Each batch is answered probe by probe, and numbers continue from batch to batch."""
    seen: list[int] = []

    def engine(costs: Sequence[float], random: Random, reach: Reach) -> Asking:
        for batch in ([0, 3], [2], [1, 1, 4]):
            probes = [Probe(frozenset(range(kept))) for kept in batch]
            trials = yield probes
            assert [trial.probe for trial in trials] == probes
            seen.extend(trial.number for trial in trials)
        return Claim("undecided")

    drive(engine, simulation(), Random(0))
    assert seen == list(range(6))


def test_covers_compares_an_interval_with_the_exact_value() -> None:
    """An interval is of a risk or of a change; one beside the exact value does not cover it."""
    one, curve = simulation(), INSTANCE.recorded.curve()
    for at in range(9):
        assert Interval("curve", at, curve[at] - 0.01, curve[at] + 0.01).covers(one)
        assert not Interval("curve", at, curve[at] + 0.01, 1.0).covers(one)
    change = curve[5] - curve[2]
    assert Interval("effect", 5, change - 0.01, change + 0.01, since=2).covers(one)
    assert not Interval("effect", 5, change - 0.02, change - 0.01, since=2).covers(one)
