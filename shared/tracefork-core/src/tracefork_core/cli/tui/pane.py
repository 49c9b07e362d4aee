"""The lower part of the view as a widget: lines that scroll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tracefork_core.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def strip(text: Text, console: Console, width: int) -> Strip:
    """Return a line of the screen.

    What makes a line spells control characters out. Where that is forgotten, this still does.
    """
    pieces = (
        piece if piece.text.isprintable() else Segment(printable(piece.text), piece.style)
        for piece in text.render(console)
    )
    return Strip(pieces).adjust_cell_length(width)


class Pane(ScrollView, can_focus=False):
    """Shows lines, and renders those on the screen."""

    DEFAULT_CSS = "Pane { overflow-x: hidden; scrollbar-size-vertical: 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.lines: Sequence[Text] = ()

    def show(self, lines: Sequence[Text], *, stays: bool = False) -> None:
        """Show other lines; from their first one, unless the place on the screen `stays`."""
        self.lines = lines
        self.virtual_size = Size(1, len(lines))
        if not stays:
            self.scroll_to(y=0, animate=False, immediate=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        n, width = self.scroll_offset.y + y, self.size.width
        if n >= len(self.lines):
            return Strip.blank(width)
        return strip(self.lines[n], self.app.console, width)
