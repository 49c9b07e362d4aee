"""Share the blame among units that are named together, by exact Shapley values.

Shapley values ignore order: an echo gets as much as its root. So they only share the blame within a
set that is already known, and never find one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from math import factorial

from tracefork_core.blaming.engine.evidence import Evidence
from tracefork_core.blaming.engine.probe import Probe

Worths = Mapping[frozenset[int], float]
"""The risk of a run for each coalition of players held to their recorded responses."""

LARGEST = 4


def coalitions(players: Collection[int]) -> tuple[frozenset[int], ...]:
    """Return every subset of the players, the empty one first."""
    ordered = sorted(players)
    return tuple(
        frozenset(some) for size in range(len(ordered) + 1) for some in combinations(ordered, size)
    )


def designed(players: Collection[int], units: int, live: Collection[int] = ()) -> list[Probe]:
    """Return the probe of each coalition; all units outside the players are held as recorded.

    Args:
        players: the units that share the blame.
        units: number of units in the run.
        live: units that respond to the players and stay live: mediators.
    """
    others = frozenset(range(units)) - frozenset(players) - frozenset(live)
    return [Probe(others | some, (), None, "sharing") for some in coalitions(players)]


def worths(
    evidence: Evidence, players: Collection[int], units: int, live: Collection[int] = ()
) -> Worths:
    """Return the observed risk, 0 to 1, of each coalition that was tried."""
    seen = {}
    for some, probe in zip(coalitions(players), designed(players, units, live), strict=True):
        if (risk := evidence.tally(probe).rate) is not None:
            seen[some] = risk
    return seen


def shapley(values: Worths, players: Sequence[int]) -> dict[int, float]:
    """Return each player's mean contribution over all orders (Shapley 1953).

    They sum to v(all) - v(none).

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

    Above 0 the two need each other, below 0 either one is enough.

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
