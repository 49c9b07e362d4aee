"""Spell out what must not reach a terminal: what a model or a server wrote must not drive it.

Every text of a tape passes `printable` on its way to a terminal: the console of the command line
applies it to all that it prints, and the errors and warnings of tracefork to their texts.
"""

from __future__ import annotations


def printable(text: str, *, lines: bool = False) -> str:
    r"""Spell every character that is not plainly visible as an escape.

    Control characters, terminal escapes, bidirectional and zero-width marks, lone surrogates and
    unusual spaces become `\x1b`, `\u202e` and the like. With `lines`, line feeds stay and tabs
    become spaces.
    """
    if text.isprintable():
        return text
    if lines:
        return "\n".join(printable(line.expandtabs(4)) for line in text.split("\n"))
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
