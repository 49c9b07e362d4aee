"""Delta debugging: make a failing list smaller until no single element can be left out.

This is ddmin of Zeller and Hildebrandt (2002) with the test of complements alone. Their test of
subsets only helps if one chunk fails by itself; a complement of halves is that same chunk. For n
elements it takes at most n² + 3n tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

Unit = TypeVar("Unit")


def ddmin(
    units: Sequence[Unit],
    fails: Callable[[list[Unit]], bool],
    tell: Callable[[int, int], object] = lambda kept, left: None,
) -> list[Unit]:
    """Return a part of `units`, in order, that fails and of which each single unit is needed.

    Args:
        units: the whole list, which fails.
        fails: whether a part fails; called once for each part.
        tell: called before each test with the size of the smallest failing part so far, and how
            many tests are left if none of them fails.
    """
    kept, tried = list(range(len(units))), dict[tuple[int, ...], bool]()
    chunks = min(2, len(kept))
    while kept:
        for i, part in enumerate(_complements(kept, chunks)):
            key = tuple(part)
            if key not in tried:
                tell(len(kept), chunks - i)
                tried[key] = fails([units[n] for n in part])
            if tried[key]:
                kept, chunks = part, max(chunks - 1, 2)
                break
        else:
            if chunks >= len(kept):
                break
            chunks *= 2
        chunks = min(chunks, len(kept))
    return [units[n] for n in kept]


def _complements(kept: Sequence[int], chunks: int) -> list[list[int]]:
    """Return the list without each of so many chunks of about equal size."""
    bounds = [len(kept) * i // chunks for i in range(chunks + 1)]
    return [[*kept[:start], *kept[end:]] for start, end in pairwise(bounds)]
