"""Make recorded text safe to print: what a model or a server wrote must not drive a terminal."""

from __future__ import annotations

LONGEST = 10_000
"""Characters of one text that are printed. Wrapping megabytes for a terminal takes seconds."""


def printable(text: str, *, lines: bool = False, longest: int | None = LONGEST) -> str:
    r"""Spell every character that is not plainly visible as an escape.

    Control characters, terminal escapes, bidirectional and zero-width marks, lone surrogates and
    unusual spaces become `\x1b`, `\u202e` and the like. With `lines`, line feeds stay and tabs
    become spaces. A longer text than `longest` characters is cut.
    """
    if longest is not None and len(text) > longest:
        text = text[:longest] + "…"
    if text.isprintable():
        return text
    if lines:
        return "\n".join(printable(line.expandtabs(4), longest=None) for line in text.split("\n"))
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def readable(data: bytes, *, lines: bool = False) -> str:
    """Decode bytes as UTF-8 as far as that goes, and make all of them printable."""
    return printable(data.decode("utf-8", "backslashreplace"), lines=lines, longest=None)


def shortened(text: str, width: int) -> str:
    """Cut printable text to `width` characters, with an ellipsis where something is missing."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
