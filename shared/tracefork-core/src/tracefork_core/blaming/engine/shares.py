"""How the blame is shared among units that are named together: exact, for a few.

Shapley values say nothing of who came first: an echo gets as much as its root. They share blame
within a set that is already known, and never find one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from math import factorial

from tracefork_core.blaming.engine.evidence import Evidence
from tracefork_core.blaming.engine.probe import Probe

Worths = Mapping[frozenset[int], float]
"""The risk of a run by which of the players are held to their recorded response."""

LARGEST = 4


def coalitions(players: Collection[int]) -> tuple[frozenset[int], ...]:
    """Return every subset of the players, the empty one first."""
    ordered = sorted(players)
    return tuple(
        frozenset(some) for size in range(len(ordered) + 1) for some in combinations(ordered, size)
    )


def designed(players: Collection[int], units: int, live: Collection[int] = ()) -> list[Probe]:
    """Return the probe of each coalition: everybody else is held to what is recorded.

    Args:
        players: who shares.
        units: how many units the run has.
        live: units that follow what the players do: mediators.
    """
    others = frozenset(range(units)) - frozenset(players) - frozenset(live)
    return [Probe(others | some, (), None, "sharing") for some in coalitions(players)]


def worths(
    evidence: Evidence, players: Collection[int], units: int, live: Collection[int] = ()
) -> Worths:
    """Return the risk seen for each coalition that was tried."""
    seen = {}
    for some, probe in zip(coalitions(players), designed(players, units, live), strict=True):
        if (risk := evidence.tally(probe).rate) is not None:
            seen[some] = risk
    return seen


def shapley(values: Worths, players: Sequence[int]) -> dict[int, float]:
    """Return each player's mean contribution over all orders (Shapley 1953).

    Sums to v(all) - v(none).

    Raises:
        KeyError: the worth of a coalition is not known.
    """
    total, shares = factorial(len(players)), {}
    for player in sorted(players):
        share = 0.0
        for some in coalitions(set(players) - {player}):
            orders = factorial(len(some)) * factorial(len(players) - len(some) - 1)
            share += orders / total * (values[some | {player}] - values[some])
        shares[player] = share
    return shares


def interaction(values: Worths, players: Sequence[int], pair: tuple[int, int]) -> float:
    """Return the Shapley interaction of a pair (Grabisch & Roubens 1999).

    Above 0 the two need each other, below 0 either would do.

    Raises:
        KeyError: the worth of a coalition is not known.
    """
    one, other = pair
    total, value = factorial(len(players) - 1), 0.0
    for some in coalitions(set(players) - {one, other}):
        orders = factorial(len(some)) * factorial(len(players) - len(some) - 2)
        both = values[some | {one, other}] - values[some | {one}]
        value += orders / total * (both - values[some | {other}] + values[some])
    return value
