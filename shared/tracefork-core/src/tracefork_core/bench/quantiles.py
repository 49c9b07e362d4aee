"""Order statistics, and the exact tail of a binomial."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, fsum, lgamma, log, log1p


def quantile(values: Sequence[int], share: float) -> int:
    """Return the smallest value that at least this share of the values does not exceed."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def at_most(hits: int, of: int, chance: float) -> float:
    """Return the exact chance of so few hits, or fewer, in so many tries of this chance."""
    return fsum(_exactly(n, of, chance) for n in range(hits + 1))


def _exactly(hits: int, of: int, chance: float) -> float:
    if chance in (0, 1):
        return float(hits == of * chance)
    # In logarithms: the ways to choose from a thousand are more than a float can hold.
    ways = lgamma(of + 1) - lgamma(hits + 1) - lgamma(of - hits + 1)
    return exp(ways + hits * log(chance) + (of - hits) * log1p(-chance))
