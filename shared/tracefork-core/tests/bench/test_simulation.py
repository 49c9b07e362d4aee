from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from random import Random

import pytest

from tracefork_core.bench.cases import CASES
from tracefork_core.bench.simulation import Simulation
from tracefork_core.blaming.engine.probe import Probe

RUN = CASES["echo"].instance(8, 3).recorded


def simulation(seed: int = 0, **options: object) -> Simulation:
    return Simulation(RUN, Random(seed), **options)  # type: ignore[arg-type]


def held(*units: int) -> Probe:
    return Probe(frozenset(units))


def test_only_live_units_count_as_calls() -> None:
    """Held and given units cost nothing, and a run with `until` stops there."""
    one = simulation()
    first, second = one.try_one(held()), one.try_one(held(0, 1, 2))
    given = one.try_one(Probe(frozenset({0, 1}), given=((2, first.number), (5, 1))))
    short = one.try_one(Probe(frozenset({0}), until=4))
    whole = one.try_one(held(*range(8)))
    counts = [trial.calls for trial in (first, second, given, short, whole)]
    assert counts == [8, 5, 4, 4, 0]
    assert (one.calls, one.forks) == (21, 5)
    assert [one.price(trial.probe) for trial in (first, second, given, short, whole)] == counts
    assert [trial.number for trial in (first, second, given, short, whole)] == list(range(5))


def test_a_run_that_stops_early_has_no_outcome() -> None:
    """It is not undefined either, since no outcome was requested."""
    trial = simulation().try_one(Probe(frozenset(), until=3))
    assert (trial.failed, trial.undefined) == (None, None)
    assert simulation().try_one(held()).failed in (True, False)


def test_a_given_unit_answers_as_in_its_trial() -> None:
    """A root that failed in one trial fails every run it is given to."""
    (root,) = CASES["echo"].instance(8, 3).truth.answers[0].units
    one = simulation()
    trials = [one.try_one(held(*range(root))) for _ in range(200)]
    good = next(trial for trial in trials if not trial.same[root])
    bad = next(trial for trial in trials if trial.same[root])
    rates = [
        sum(
            bool(one.try_one(Probe(frozenset(range(root)), ((root, by.number),))).failed)
            for _ in range(200)
        )
        / 200
        for by in (good, bad)
    ]
    assert rates[0] < 0.2
    assert rates[1] > 0.8


@pytest.mark.parametrize(
    ("probe", "error"),
    [
        (held(8), "no unit 8"),
        (Probe(frozenset(), given=((0, 7),)), "no trial 7"),
        (Probe(frozenset({0}), given=((0, 0),)), "held and given"),
        (Probe(frozenset(), given=((5, 0),)), "ended before unit 5"),
    ],
)
def test_impossible_probes_are_refused(probe: Probe, error: str) -> None:
    """The error names the mistake of the engine."""
    one = simulation()
    one.try_one(Probe(frozenset(), until=4))
    with pytest.raises(ValueError, match=error):
        one.try_one(probe)


def test_same_has_live_units_up_to_the_first_difference() -> None:
    """A live unit is compared only if everything before it is as recorded."""
    one = simulation()
    for _ in range(100):
        trial = one.try_one(held(0, 1, 5))
        live = [unit for unit in (2, 3, 4, 6, 7) if unit in trial.same]
        assert live == [2, 3, 4, 6, 7][: len(live)]
        assert all(trial.same[unit] for unit in live[:-1])
        assert len(live) == 5 or not trial.same[live[-1]]


@pytest.mark.parametrize("fixed", [(), (0, 1, 2), (4,), range(8)])
def test_probes_fail_as_often_as_the_exact_risk(fixed: Sequence[int]) -> None:
    """4000 trials fail within four standard errors of the risk that `risk` computes."""
    one, tries = simulation(seed=9), 4000
    fails = sum(bool(one.try_one(held(*fixed)).failed) for _ in range(tries))
    risk = one.risk(fixed)
    assert abs(fails / tries - risk) < 4 * sqrt(risk * (1 - risk) / tries)


def test_runs_lose_their_outcome_at_the_rate_of_breaks() -> None:
    """Such runs have a reason; without the option no run loses its outcome."""
    one = simulation(breaks=(0.1, 0.4))
    trials = [one.try_one(held(*range(8))) for _ in range(2000)]
    broken = [trial for trial in trials if trial.undefined]
    assert all(trial.failed is None for trial in broken)
    assert 0.35 < len(broken) / len(trials) < 0.43
    whole = simulation()
    assert not any(whole.try_one(held()).undefined for _ in range(200))


def test_units_may_be_groups_in_any_order() -> None:
    """A group is held, drawn and charged as a whole, wherever its steps are in the run."""
    one = simulation(units=[(4, 5, 6, 7), (0, 2), (1, 3)])
    assert one.costs == [4.0, 2.0, 2.0]
    assert one.risk({1, 2}) == RUN.risk(range(4))
    assert one.try_one(held(1)).calls == 6
    trial = one.try_one(Probe(frozenset({2}), until=1))
    assert trial.calls == 2
    assert set(trial.same) == {1}
