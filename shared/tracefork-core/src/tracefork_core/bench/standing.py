"""How an engine stands beside the rules of others, on the same runs at the same size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracefork_core.bench.quantiles import quantile
from tracefork_core.bench.rivals import LADDER, RIVALS
from tracefork_core.bench.score import Cell

SHIPPED = 10
"""How many forks at each step others make unless told otherwise."""
ENOUGH = 0.95
"""The share of first suspects that have to be right."""


@dataclass(frozen=True, slots=True)
class Rivalry:
    """What a rule of others comes to.

    Attributes:
        rule: its name.
        found: the share of steps it finds with 10 forks at each step.
        calls: the live calls this takes, at the median.
        each: the fewest forks at each step from which on it finds 95 %; None if it never does.
        enough: the live calls that takes, at the median.
    """

    rule: str
    found: float
    calls: int
    each: int | None
    enough: int | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Runs of one size that have a culprit, in all cases together.

    Attributes:
        size: how many steps they have.
        runs: how many there are.
        found: the share of first suspects that are right.
        suspect: the live calls until the first suspect is named, at the median.
        verdict: the live calls until the full verdict, at the median.
        rivals: the rules of others.
    """

    size: int
    runs: int
    found: float
    suspect: int
    verdict: int
    rivals: tuple[Rivalry, ...]

    def rival(self, rule: str) -> Rivalry:
        """Return what one rule comes to."""
        return next(rival for rival in self.rivals if rival.rule == rule)


def standings(cells: Sequence[Cell]) -> list[Standing]:
    """Return how the engine stands at each size, over the cells whose runs have a culprit."""
    culprits = [cell for cell in cells if None not in cell.scored[0].instance.truth.decisive]
    sizes = sorted({cell.size for cell in culprits if cell.case.size is None})
    return [_standing(size, [cell for cell in culprits if cell.size == size]) for size in sizes]


def _standing(size: int, cells: Sequence[Cell]) -> Standing:
    scored = [one for cell in cells for one in cell.scored]
    return Standing(
        size,
        len(scored),
        sum(one.found for one in scored) / len(scored),
        quantile([one.localising for one in scored], 0.5),
        quantile([one.calls for one in scored], 0.5),
        tuple(_rivalry(rule, cells, len(scored)) for rule in RIVALS),
    )


def _rivalry(rule: str, cells: Sequence[Cell], runs: int) -> Rivalry:
    share = {each: sum(cell.found_by(rule, each) for cell in cells) / runs for each in LADDER}
    calls = {
        each: quantile([pick.calls for cell in cells for pick in cell.rivals[rule, each]], 0.5)
        for each in LADDER
    }
    steady = None
    for each in reversed(LADDER):
        if share[each] < ENOUGH:
            break
        steady = each
    enough = None if steady is None else calls[steady]
    return Rivalry(rule, share[SHIPPED], calls[SHIPPED], steady, enough)
