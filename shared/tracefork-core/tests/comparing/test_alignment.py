"""Sequences are paired so that one item more or less shifts nothing."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracefork_core.comparing.alignment import WINDOW, align

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
KEYS = st.lists(st.integers(0, 9), max_size=40)


@PATIENT
@given(KEYS, KEYS)
def test_pairs_are_equal_and_keep_the_order(first: list[int], second: list[int]) -> None:
    """Both numbers increase, so no item is paired twice."""
    pairs = align(first, second)
    assert all(first[i] == second[j] for i, j in pairs)
    for one, other in pairwise(pairs):
        assert one[0] < other[0]
        assert one[1] < other[1]


@PATIENT
@given(st.lists(st.integers(), unique=True, min_size=1, max_size=60), st.data())
def test_one_more_item_leaves_all_others_paired(items: list[int], data: st.DataObject) -> None:
    """This holds wherever it comes in; and for one less, which is the same seen from the other."""
    at = data.draw(st.integers(0, len(items)))
    longer = [*items[:at], "new", *items[at:]]
    expected = [(i, i + (i >= at)) for i in range(len(items))]
    assert align(items, longer) == expected
    assert align(longer, items) == [(j, i) for i, j in expected]


@PATIENT
@given(st.integers(0, 30), st.integers(0, 30))
def test_items_that_are_all_alike_are_paired_from_the_start(count: int, other: int) -> None:
    """What is left over is at the end, as in a loop that ran longer."""
    pairs = align(["same"] * count, ["same"] * other)
    assert pairs == [(i, i) for i in range(min(count, other))]


def test_a_long_stretch_without_anchors_is_compared_in_windows() -> None:
    """Two keys by turns, ten windows long, with one more in the middle: the rest is paired."""
    first = ["a", "b"] * (5 * WINDOW)
    second = [*first[:WINDOW], "c", *first[WINDOW:]]
    pairs = align(["x", *first, "y"], ["z", *second, "w"])
    assert len(pairs) >= len(first) - 2 * WINDOW
