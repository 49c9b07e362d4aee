"""The truth about a recorded run, computed from the tables of its agent: nothing is estimated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb

from tracefork_core.bench.program import Program

THRESHOLD = 0.30
"""The least responsibility that makes a step the decisive one."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run of a program that failed, and was recorded."""

    program: Program
    responses: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.responses)

    def risk(self, held: Iterable[int]) -> float:
        """Return the chance of failure where these steps keep their response, the rest live."""
        return self.program.risk({step: self.responses[step] for step in held})

    def curve(self) -> list[float]:
        """Return the risk after each prefix: of length n + 1, the last with everything held."""
        return [self.risk(range(position)) for position in range(len(self) + 1)]

    def advantages(self) -> list[float]:
        """Return how much each step changed the risk of what was recorded before it."""
        return changes(self.curve())

    def responsibility(self) -> list[float]:
        """Return how much each step changed the risk for good: nothing later undid it."""
        return responsibility(self.curve())

    def decisive(self) -> int | None:
        """Return the step that doomed the run; None where no step did."""
        shares = self.responsibility()
        largest = max(shares)
        return shares.index(largest) if largest >= THRESHOLD else None

    def sufficiency(self) -> list[float]:
        """Return how much each step alone, held in an otherwise live run, raises the risk."""
        baseline = self.risk(())
        return [self.risk((step,)) - baseline for step in range(len(self))]

    def necessity(self) -> list[float]:
        """Return how much re-drawing each step alone, all others held, lowers the risk."""
        everything = frozenset(range(len(self)))
        whole = self.risk(everything)
        return [whole - self.risk(everything - {step}) for step in range(len(self))]

    def shapley(self, players: Sequence[int] | None = None) -> list[float]:
        """Return the exact credit of each player in the risk; who plays no part stays live.

        Takes 2^len(players) evaluations.
        """
        who = range(len(self)) if players is None else players
        worth = _remembered(self.risk)
        return [_credit(one, who, worth) for one in who]

    def interaction(self, one: int, other: int, players: Sequence[int] | None = None) -> float:
        """Return the pairwise interaction index: above 0 synergy (and), below redundancy (or)."""
        who = range(len(self)) if players is None else players
        rest = [player for player in who if player not in (one, other)]
        worth = _remembered(self.risk)
        total = 0.0
        for size in range(len(rest) + 1):
            weight = 1 / ((len(rest) + 1) * comb(len(rest), size))
            for chosen in map(frozenset, combinations(rest, size)):
                both = worth(chosen | {one, other}) + worth(chosen)
                total += weight * (both - worth(chosen | {one}) - worth(chosen | {other}))
        return total


def changes(curve: Sequence[float]) -> list[float]:
    """Return the differences of neighbours."""
    return [after - before for before, after in pairwise(curve)]


def responsibility(curve: Sequence[float]) -> list[float]:
    """Return the differences of the curve's lowest values from each position on."""
    lowest = list(curve)
    for position in reversed(range(len(curve) - 1)):
        lowest[position] = min(lowest[position], lowest[position + 1])
    return changes(lowest)


def _credit(one: int, who: Sequence[int], worth: Callable[[frozenset[int]], float]) -> float:
    rest = [player for player in who if player != one]
    total = 0.0
    for size in range(len(rest) + 1):
        weight = 1 / (len(who) * comb(len(rest), size))
        for chosen in map(frozenset, combinations(rest, size)):
            total += weight * (worth(chosen | {one}) - worth(chosen))
    return total


def _remembered(risk: Callable[[Collection[int]], float]) -> Callable[[frozenset[int]], float]:
    known: dict[frozenset[int], float] = {}

    def worth(held: frozenset[int]) -> float:
        if held not in known:
            known[held] = risk(held)
        return known[held]

    return worth
