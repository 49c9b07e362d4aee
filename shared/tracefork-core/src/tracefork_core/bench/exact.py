"""The truth about a recorded run, computed from the tables of its agent: nothing is estimated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tracefork_core.bench.causal_program import Program

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

    def responsibility(self) -> list[float]:
        """Return how much each step changed the risk for good: nothing later undid it."""
        return responsibility(self.curve())

    def decisive(self) -> int | None:
        """Return the step that doomed the run; None where no step did."""
        shares = self.responsibility()
        largest = max(shares)
        return shares.index(largest) if largest >= THRESHOLD else None


def changes(curve: Sequence[float]) -> list[float]:
    """Return the differences of neighbours."""
    return [after - before for before, after in pairwise(curve)]


def responsibility(curve: Sequence[float]) -> list[float]:
    """Return the differences of the curve's lowest values from each position on."""
    lowest = list(curve)
    for position in reversed(range(len(curve) - 1)):
        lowest[position] = min(lowest[position], lowest[position + 1])
    return changes(lowest)
