"""Cut two texts down to the pieces that differ, each made of whole words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher

_PIECE = re.compile(r"\s+|[^\s]+")
_MOST = 3_000


def fragments(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of pieces that differ; one pair where the same words are in another order."""
    ones, others = _PIECE.findall(before), _PIECE.findall(after)
    start = _shared(ones, others)
    end = _shared(ones[start:][::-1], others[start:][::-1])
    ones, others = ones[start : len(ones) - end], others[start : len(others) - end]
    if not ones and not others:
        return
    if words(" ".join(ones)) == words(" ".join(others)) or max(len(ones), len(others)) > _MOST:
        yield "".join(ones).strip(), "".join(others).strip()
        return
    matcher = SequenceMatcher(None, ones, others, autojunk=False)
    for change, a, b, c, d in matcher.get_opcodes():
        pair = "".join(ones[a:b]).strip(), "".join(others[c:d]).strip()
        if change != "equal" and any(pair):
            yield pair


def words(text: str) -> Counter[str]:
    """Return the words of a text, whatever their order."""
    return Counter(re.findall(r"\w+", text))


def _shared(ones: list[str], others: list[str]) -> int:
    """Return how many pieces both begin with."""
    pairs = enumerate(zip(ones, others, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(ones), len(others)))
