"""What a bench has to come to, case by case and over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tracefork_core.bench.quantiles import at_most
from tracefork_core.bench.rivals import LADDER
from tracefork_core.bench.score import Cell, Scored, accepted
from tracefork_core.bench.standing import ENOUGH, SHIPPED, Standing

MOST_ACCUSATIONS = 0.03
COVERAGE = 0.95
RATIO, RATIO_SIZE = 5, 32
"""How many times fewer calls than the largest drop it has to take, at how many steps."""
_RARELY = 0.05


@dataclass(frozen=True, slots=True)
class Check:
    """A rule for all runs of a bench together.

    Attributes:
        name: what is looked at.
        found: what it came to.
        wanted: what it has to be at least, or at most.
        holds: whether it is.
    """

    name: str
    found: float
    wanted: float
    holds: bool


def checks(cells: Sequence[Cell], standings: Sequence[Standing]) -> Iterator[Check]:
    """Give the pooled rules."""
    scored = [one for cell in cells for one in cell.scored]
    finds = sum(one.found for one in scored)
    yield Check(
        "first suspect right", finds / len(scored), ENOUGH, accepted(finds, len(scored), ENOUGH)
    )
    fair = sum(not one.accuses for one in scored)
    yield Check(
        "false accusations",
        1 - fair / len(scored),
        MOST_ACCUSATIONS,
        accepted(fair, len(scored), 1 - MOST_ACCUSATIONS),
    )
    yield from _coverage(scored)
    for one in standings:
        if one.size == RATIO_SIZE:
            drop = one.rival("largest drop")
            # Where it never finds enough, the most that was tried bounds what it would take.
            calls = drop.enough or drop.calls * LADDER[-1] / SHIPPED
            ratio = calls / max(1, one.suspect)
            yield Check(f"times fewer calls, n={one.size}", ratio, RATIO, ratio >= RATIO)


def _coverage(scored: Sequence[Scored]) -> Iterator[Check]:
    """Give the audit of intervals: each run stops when it likes, so each is an adaptive stop.

    Those of a curve have to hold all at once in 95 % of the runs. That fails where so few would be
    rare for intervals that just do.
    """
    printed = sum(len(one.said.intervals) for one in scored)
    if not printed:
        return
    share = 1 - sum(len(one.uncovered) for one in scored) / printed
    yield Check("intervals that cover", share, COVERAGE, share >= COVERAGE)
    kept = sum(not any(missed.name == "curve" for missed in one.uncovered) for one in scored)
    holds = at_most(kept, len(scored), COVERAGE) >= _RARELY
    yield Check("curves covered as a whole", kept / len(scored), COVERAGE, holds)
