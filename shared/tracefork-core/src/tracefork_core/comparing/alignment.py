"""Pair the items of two sequences, so that one more or one less does not shift all that follows.

What both begin and end with is paired first. Keys that occur once in each are anchors, and the
stretches between two anchors are aligned in the same way. A stretch without an anchor is compared
by `difflib`, at most `WINDOW` items of each at a time, which is where an insertion of more items
than that is no longer recognised. The cost is O(n log n) where keys differ from one another, and
O(n * WINDOW) where they are all alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher

WINDOW = 500
"""The items of a stretch without anchors that are compared with one another."""

Pairs = list[tuple[int, int]]
"""Positions in both sequences; both numbers increase."""


def align(first: Sequence[Hashable], second: Sequence[Hashable]) -> Pairs:
    """Return which items of two sequences have equal keys, in an order that both share."""
    found: Pairs = []
    stretches = [(0, len(first), 0, len(second))]
    while stretches:
        start, stop, other, end = stretches.pop()
        while start < stop and other < end and first[start] == second[other]:
            found.append((start, other))
            start, other = start + 1, other + 1
        while start < stop and other < end and first[stop - 1] == second[end - 1]:
            stop, end = stop - 1, end - 1
            found.append((stop, end))
        if start == stop or other == end:
            continue
        anchors = _anchors(first[start:stop], second[other:end])
        if anchors:
            for i, j in anchors:
                found.append((start + i, other + j))
            stretches += _between(anchors, start, stop, other, end)
        else:
            found += _windows(first, second, start, stop, other, end)
    return sorted(found)


def _anchors(first: Sequence[Hashable], second: Sequence[Hashable]) -> Pairs:
    """Return pairs of keys that occur once in each: the longest series in a common order."""
    counts, others = Counter(first), Counter(second)
    place = {key: j for j, key in enumerate(second) if others[key] == 1}
    unique = [(i, place[key]) for i, key in enumerate(first) if counts[key] == 1 and key in place]
    # The longest increasing subsequence, by patience sorting.
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(unique):
        pile = bisect_left(tops, j)
        before.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        ends[pile : pile + 1] = [number]
    series: Pairs = []
    number = ends[-1] if ends else -1
    while number >= 0:
        series.append(unique[number])
        number = before[number]
    return series[::-1]


def _between(
    anchors: Pairs, start: int, stop: int, other: int, end: int
) -> Iterator[tuple[int, int, int, int]]:
    left, right = start, other
    for i, j in anchors:
        yield left, start + i, right, other + j
        left, right = start + i + 1, other + j + 1
    yield left, stop, right, end


def _windows(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    start: int,
    stop: int,
    other: int,
    end: int,
) -> Iterator[tuple[int, int]]:
    while start < stop and other < end:
        here = first[start : min(stop, start + WINDOW)]
        there = second[other : min(end, other + WINDOW)]
        matcher = SequenceMatcher(None, here, there, autojunk=False)
        for i, j, length in matcher.get_matching_blocks():
            yield from ((start + i + k, other + j + k) for k in range(length))
        start, other = start + len(here), other + len(there)
