"""Shapley shares agree with an enumeration of all orders and subsets."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from tracefork_core.blaming.engine.evidence import Evidence
from tracefork_core.blaming.engine.probe import Trial
from tracefork_core.blaming.engine.shares import coalitions, designed, interaction, shapley, worths


def game(players: list[int], seed: int) -> dict[frozenset[int], float]:
    """Return a random worth for every coalition."""
    random = Random(seed)
    return {some: random.random() for some in coalitions(players)}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 8])
def test_shares_are_means_over_all_orders(size: int) -> None:
    """Up to 4 players all orders are compared, above that subsets; shares sum to the whole."""
    players = [3 * unit for unit in range(size)]
    values = game(players, size)
    shares = shapley(values, players)
    whole = values[frozenset(players)] - values[frozenset()]
    assert sum(shares.values()) == pytest.approx(whole)
    if size > 4:
        weights = subsets(values, players)
        assert shares == pytest.approx(weights)
        return
    orders = list(permutations(players))
    expected = dict.fromkeys(players, 0.0)
    for order in orders:
        for place, player in enumerate(order):
            before = frozenset(order[:place])
            expected[player] += (values[before | {player}] - values[before]) / len(orders)
    assert shares == pytest.approx(expected)


def subsets(values: dict[frozenset[int], float], players: list[int]) -> dict[int, float]:
    """Return shares by Harsanyi dividends over all 2^n subsets; each splits its own equally."""
    dividends: dict[frozenset[int], float] = {}
    for some in coalitions(players):
        below = sum(dividends[part] for part in coalitions(some) if part != some)
        dividends[some] = values[some] - below
    return {
        player: sum(value / len(some) for some, value in dividends.items() if player in some)
        for player in players
    }


def test_two_units_that_need_each_other_have_equal_shares() -> None:
    """Their interaction is 1 in a conjunction, and -1 in a disjunction."""
    joint = {some: float(len(some) == 2) for some in coalitions([1, 4])}
    assert shapley(joint, [1, 4]) == {1: 0.5, 4: 0.5}
    assert interaction(joint, [1, 4], (1, 4)) == 1
    alike = {some: float(len(some) > 0) for some in coalitions([1, 4])}
    assert interaction(alike, [1, 4], (1, 4)) == -1


def test_an_interaction_is_the_mean_of_mixed_differences() -> None:
    """Over all orders of the others, it is the mean of what the pair adds beyond each alone."""
    players = [0, 1, 2, 3]
    values = game(players, 9)
    expected = 0.0
    pair = -1  # the two, as one player
    orders = list(permutations([pair, 1, 3]))
    for order in orders:
        some = frozenset(order[: order.index(pair)])
        expected += (
            values[some | {0, 2}] - values[some | {0}] - values[some | {2}] + values[some]
        ) / len(orders)
    assert interaction(values, players, (0, 2)) == pytest.approx(expected)


def test_probes_of_coalitions_hold_all_units_outside_the_players() -> None:
    """Mediators and the players outside the coalition stay live."""
    probes = designed([1, 3], 5, live=[4])
    assert [sorted(probe.held) for probe in probes] == [
        [0, 2],
        [0, 1, 2],
        [0, 2, 3],
        [0, 1, 2, 3],
    ]
    book = Evidence()
    came = (probes[0], False), (probes[3], True), (probes[3], False)
    book.add(Trial(number, probe, failed) for number, (probe, failed) in enumerate(came))
    assert worths(book, [1, 3], 5, live=[4]) == {frozenset(): 0.0, frozenset({1, 3}): 0.5}
