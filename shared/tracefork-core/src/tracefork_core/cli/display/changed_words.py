"""Show what changed in a text or a JSON value: `[-removed-]` and `{+added+}`, in colour too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.comparing.words import Piece, by_places, by_words, near
from tracefork_core.providers.lenient import Json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_INDENT = 4
_LEAST = 20
_KEPT = 60
"""How many characters of a text stay on each side of a change."""
_LONGEST = 100_000
_STYLES = {"=": "default", "-": screen.BAD, "+": screen.GOOD}


def changed_lines(before: Json, after: Json, console: Console, most: int | None) -> Iterator[Text]:
    """Yield what changed, wrapped to the console; at most so many lines, and what is left out."""
    from rich.text import Text

    width = max(_LEAST, console.width - _INDENT)
    lines = [
        line
        for change in _changes(before, after, whole=most is None)
        for line in change.wrap(console, width)
    ]
    most = len(lines) if most is None else most
    for line in lines[:most]:
        line.rstrip()
        yield Text(" " * _INDENT).append_text(line)
    if len(lines) > most:
        left = figures.several(len(lines) - most, "more line")
        yield Text(f"{' ' * _INDENT}… {left}: --at N", screen.DIM)


def _changes(before: Json, after: Json, *, whole: bool) -> Iterator[Text]:
    from rich.text import Text

    if before is None or after is None or (isinstance(before, str) and isinstance(after, str)):
        pieces = by_words(_text(before)[:_LONGEST], _text(after)[:_LONGEST])
        yield _marked(pieces if whole else near(pieces, _KEPT))
        return
    for pointer, one, other in by_places(before, after):
        line = Text(printable(pointer or "all of it"), "default").append("  ")
        line.append(figures.UNKNOWN if one is None else printable(one), screen.BAD).append(" → ")
        yield line.append(figures.UNKNOWN if other is None else printable(other), screen.GOOD)


def _marked(pieces: list[Piece]) -> Text:
    from rich.text import Text

    line = Text()
    for piece in pieces:
        line.append(piece.around(printable(piece.text, lines=True)), _STYLES[piece.mark])
    return line


def _text(value: Json) -> str:
    if value is None:
        return ""
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
