"""The console that all text for people is printed on: nothing on it can drive a terminal.

The code that makes a table or a line makes the text of a tape printable first, so that columns fit
and a line feed makes no new line. If that is forgotten, the console still spells escapes out.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tracefork_core.printable import printable


class PrintableConsole(Console):
    """A console that prints the colours and moves of rich itself, and of a text only what shows."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the pieces of what is printed; a control piece is rich's own."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text, lines=True), segment.style)
