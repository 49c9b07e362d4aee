"""Two texts are cut down to what differs, in whole words."""

from __future__ import annotations

import pytest

from tracefork_core.explaining.fragments import fragments

CASES = [
    ("It is 10:31 now.", "It is 10:32 now.", [("10:31", "10:32")]),
    ("a 1 b 2 c", "a 3 b 4 c", [("1", "3"), ("2", "4")]),
    ("{'x', 'y', 'z'}", "{'z', 'x', 'y'}", [("{'x', 'y', 'z'}", "{'z', 'x', 'y'}")]),
    ("one two", "one", [("two", "")]),
    ("same", "same", []),
]


@pytest.mark.parametrize(("before", "after", "found"), CASES)
def test_only_what_differs_is_left(before: str, after: str, found: list[tuple[str, str]]) -> None:
    """Each changed word by itself; words in another order stay together; nothing for nothing."""
    assert list(fragments(before, after)) == found


def test_a_large_text_is_not_compared_word_by_word() -> None:
    """A hundred thousand words that differ are one piece, at once."""
    pair = " ".join(f"a{n}" for n in range(100_000)), " ".join(f"b{n}" for n in range(100_000))
    assert list(fragments(*pair)) == [pair]
