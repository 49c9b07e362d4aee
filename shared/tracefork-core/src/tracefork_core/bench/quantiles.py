"""Order statistics, and the exact tail of a binomial."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, comb


def quantile(values: Sequence[int], share: float) -> int:
    """Return the smallest value that at least this share of the values does not exceed."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def at_most(hits: int, of: int, chance: float) -> float:
    """Return the exact chance of so few hits, or fewer, in so many tries of this chance."""
    return sum(comb(of, n) * chance**n * (1 - chance) ** (of - n) for n in range(hits + 1))
