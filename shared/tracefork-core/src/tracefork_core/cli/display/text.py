"""Text for people: recorded text that is safe to print, cut to a width."""

from __future__ import annotations

from tracefork_core.printable import printable as escaped

LONGEST = 10_000
"""Characters of one text that are printed. Wrapping megabytes for a terminal takes seconds."""


def printable(text: str, *, lines: bool = False, longest: int | None = LONGEST) -> str:
    """Escape a text as `tracefork_core.printable` does; a longer one than `longest` is cut."""
    if longest is not None and len(text) > longest:
        text = text[:longest] + "…"
    return escaped(text, lines=lines)


def readable(data: bytes, *, lines: bool = False) -> str:
    """Decode bytes as UTF-8 as far as that goes, and make all of them printable."""
    return printable(data.decode("utf-8", "backslashreplace"), lines=lines, longest=None)


def shortened(text: str, width: int) -> str:
    """Cut printable text to `width` characters, with an ellipsis where something is missing."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
