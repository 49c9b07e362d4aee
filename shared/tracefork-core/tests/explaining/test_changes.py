"""Two texts are cut to the words that differ."""

from __future__ import annotations

import pytest

from tracefork_core.explaining.changes import fragments

CASES = [
    ("It is 10:31 now.", "It is 10:32 now.", [("10:31", "10:32")]),
    ("a 1 b 2 c", "a 3 b 4 c", [("1", "3"), ("2", "4")]),
    ("{'x', 'y', 'z'}", "{'z', 'x', 'y'}", [("{'x', 'y', 'z'}", "{'z', 'x', 'y'}")]),
    ("one two", "one", [("two", "")]),
    ("same", "same", []),
]


@pytest.mark.parametrize(("before", "after", "pairs"), CASES)
def test_fragments_are_the_words_that_differ(
    before: str, after: str, pairs: list[tuple[str, str]]
) -> None:
    """Each changed word is its own fragment, but words in another order stay together."""
    assert list(fragments(before, after)) == pairs


def test_a_large_text_is_one_fragment() -> None:
    """Comparing a hundred thousand words one by one would take minutes."""
    pair = " ".join(f"a{n}" for n in range(100_000)), " ".join(f"b{n}" for n in range(100_000))
    assert list(fragments(*pair)) == [pair]
