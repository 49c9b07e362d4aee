"""Delta debugging ends with a part that fails, and of which each single unit is needed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracefork_core.blaming.shrinking.ddmin import ddmin

SIZES = st.integers(min_value=1, max_value=14)


@given(SIZES, st.data())
def test_a_monotone_failure_is_shrunk_to_its_causes(size: int, data: st.DataObject) -> None:
    """A run fails if and only if all causes are in it, so the causes alone are left."""
    causes = data.draw(st.sets(st.integers(0, size - 1)))
    assert ddmin(range(size), lambda part: causes <= set(part)) == sorted(causes)


@given(SIZES, st.randoms(use_true_random=False))
def test_any_failure_is_shrunk_until_each_unit_is_needed(size: int, random: object) -> None:
    """The oracle is arbitrary but repeatable: units may hide or cause each other's failures."""
    verdicts: dict[tuple[int, ...], bool] = {tuple(range(size)): True}
    tests = 0

    def grade(part: list[int]) -> bool:
        return verdicts.setdefault(tuple(part), random.random() < 0.3)  # type: ignore[attr-defined]

    def fails(part: list[int]) -> bool:
        nonlocal tests
        tests += 1
        return grade(part)

    kept = ddmin(range(size), fails)
    assert grade(kept)
    assert not any(grade([unit for unit in kept if unit != left]) for left in kept)
    assert tests <= size**2 + 3 * size


def test_no_part_is_tried_twice() -> None:
    """Each test may cost live calls. Three causes of sixteen lie apart."""
    tried: list[tuple[int, ...]] = []

    def fails(part: list[int]) -> bool:
        tried.append(tuple(part))
        return {2, 11, 12} <= set(part)

    assert ddmin(range(16), fails) == [2, 11, 12]
    assert len(tried) == len(set(tried))
