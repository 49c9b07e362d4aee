"""Compare two texts by their words, and two JSON values by their places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tracefork_core.comparing.alignment import align
from tracefork_core.explaining.differences import MISSING, value_places
from tracefork_core.providers.lenient import Json

_PIECE = re.compile(r"\w+|\s+|[^\w\s]")
_LONGEST = 200_000
"""Characters of a text that are compared by words. The rest of a longer one is one piece."""

Mark = Literal["=", "-", "+"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that both have (`=`), or that only the first (`-`) or second (`+`) has."""

    mark: Mark
    text: str

    def around(self, text: str) -> str:
        """Return a text as this stretch is shown: `[-removed-]`, `{+added+}`, or as it is."""
        return {"=": text, "-": f"[-{text}-]", "+": f"{{+{text}+}}"}[self.mark]


def by_words(before: str, after: str) -> list[Piece]:
    """Return two texts as one, with what only one of them has marked."""
    pieces, others = _pieces(before), _pieces(after)
    found: list[Piece] = []
    at, other = 0, 0
    for i, j in [*align(pieces, others), (len(pieces), len(others))]:
        _add(found, "-", "".join(pieces[at:i]))
        _add(found, "+", "".join(others[other:j]))
        if i < len(pieces):
            _add(found, "=", pieces[i])
        at, other = i + 1, j + 1
    return list(_without_shreds(found))


def near(pieces: Sequence[Piece], kept: int) -> list[Piece]:
    """Shorten what both texts have to so many characters on each side of a change."""
    found = []
    for i, piece in enumerate(pieces):
        text = piece.text
        if piece.mark == "=" and len(text) > 2 * kept:
            start = text[:kept] if i else ""
            end = text[-kept:] if i < len(pieces) - 1 else ""
            text = f"{start} … {end}" if start and end else f"{start}…{end}"
        found.append(Piece(piece.mark, text))
    return found


def by_places(before: Json, after: Json) -> list[tuple[str, str | None, str | None]]:
    """Return where two JSON values differ: a pointer, and both values as JSON text.

    None stands for a value that one of them lacks.
    """
    return [(pointer, _text(one), _text(two)) for pointer, one, two in value_places(before, after)]


def _pieces(text: str) -> list[str]:
    pieces = _PIECE.findall(text[:_LONGEST])
    return [*pieces, text[_LONGEST:]] if len(text) > _LONGEST else pieces


def _add(found: list[Piece], mark: Mark, text: str) -> None:
    if not text:
        return
    if found and found[-1].mark == mark:
        found[-1] = Piece(mark, found[-1].text + text)
    else:
        found.append(Piece(mark, text))


def _without_shreds(pieces: list[Piece]) -> Iterator[Piece]:
    """Join changes that only white space or a sign keeps apart: they read better as one."""
    removed = added = ""
    for i, piece in enumerate(pieces):
        is_shred = piece.mark == "=" and len(piece.text.strip()) < 2
        is_between = 0 < i < len(pieces) - 1 and "\n" not in piece.text
        if piece.mark == "=" and not (is_shred and is_between):
            yield from _change(removed, added)
            yield piece
            removed = added = ""
        else:
            removed += piece.text if piece.mark != "+" else ""
            added += piece.text if piece.mark != "-" else ""
    yield from _change(removed, added)


def _change(removed: str, added: str) -> Iterator[Piece]:
    if removed:
        yield Piece("-", removed)
    if added:
        yield Piece("+", added)


def _text(value: object) -> str | None:
    return None if value is MISSING else json.dumps(value, ensure_ascii=False)
