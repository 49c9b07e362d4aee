from __future__ import annotations

from random import Random

import pytest

from tracefork_core.bench.cases import CASES
from tracefork_core.bench.rivals import (
    RIVALS,
    controlled_commitment,
    flip_rate,
    largest_drop,
    newcombe,
    picks,
    point_of_commitment,
    single_order_shapley,
)
from tracefork_core.bench.simulation import Simulation

SINGLE = ("echo", "delayed", "background", "recovery", "and-2")


def test_each_rule_reads_the_same_counts_its_own_way() -> None:
    """The counts are failures out of 20 after each prefix, and step 2 is to blame."""
    failures, each = [4, 4, 5, 19, 18, 19, 20], 20
    assert largest_drop(failures, each) == 2
    assert point_of_commitment(failures, each) == 2
    assert controlled_commitment(failures, each) == 2
    assert flip_rate(failures[:-1], each) == 0
    assert single_order_shapley(failures[:-1], each) == 0


def test_a_few_flips_by_chance_move_the_point_of_commitment() -> None:
    """Three passes of 20 at a late step move it there, unless a control arm has two passes."""
    failures, each = [4, 4, 5, 19, 18, 16, 18], 20
    assert point_of_commitment(failures, each) == 5
    assert controlled_commitment(failures, each) == 2


def test_rules_with_an_interval_name_no_step_if_nothing_flips() -> None:
    """The other rules always name a step."""
    assert flip_rate([20] * 6, 20) is None
    assert point_of_commitment([20] * 7, 20) is None
    assert controlled_commitment([20] * 7, 20) is None
    assert largest_drop([20] * 7, 20) == 0


@pytest.mark.parametrize(
    ("hits", "others", "low", "high"), [(9, 3, 0.1705, 0.8090), (10, 0, 0.6075, 1.0)]
)
def test_newcombe_matches_the_published_table(
    hits: int, others: int, low: float, high: float
) -> None:
    """The values are those of Newcombe (1998), method 10, for ten tries each."""
    assert newcombe(hits, others, 10) == pytest.approx((low, high), abs=5e-5)


def test_calls_are_those_of_uniform_forks() -> None:
    """They are k n (n + 1) / 2 if steps are drawn again, k n (n - 1) / 2 if substituted."""
    simulation = Simulation(CASES["echo"].instance(16, 0).recorded, Random(0))
    spent = {(name, each): pick for name, each, pick in picks(simulation, (3, 12))}
    assert spent["largest drop", 12].calls == 1632
    assert spent["flip rate", 12].calls == spent["single-order Shapley", 12].calls == 1440
    assert spent["point of commitment", 3].calls == 408
    assert simulation.calls == 1632 + 2 * 1440
    assert {name for name, _ in spent} == set(RIVALS)


@pytest.mark.no_cover  # Many forks through lines that others cover.
def test_more_forks_help_the_largest_drop_and_not_the_flip_rate() -> None:
    """With 40 forks per step the drop finds nearly every root; the flips miss late ones."""
    found = dict.fromkeys(RIVALS, 0)
    for case in SINGLE:
        for seed in range(4):
            instance = CASES[case].instance(16, seed)
            for name, each, pick in picks(Simulation(instance.recorded, Random(seed)), (40,)):
                assert each == 40
                found[name] += pick.step in instance.truth.decisive
    assert found["largest drop"] >= 19
    assert found["flip rate"] < 18
    assert found["single-order Shapley"] < 6
