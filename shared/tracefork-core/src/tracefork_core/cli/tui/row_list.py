"""The timeline as a widget: a line for each exchange, made when it comes on the screen."""

from __future__ import annotations

from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tracefork_core.cli.tui.open_run import OpenRun
from tracefork_core.cli.tui.pane import strip

_AT_ONCE = 0.01
"""Seconds that one frame may spend on making rows. The others follow from a thread."""


class RowList(ScrollView, can_focus=False):
    """The rows of a run, one of which is selected."""

    DEFAULT_CSS = "RowList { overflow-x: hidden; scrollbar-size-vertical: 1; }"
    cursor = reactive(0, repaint=False)

    class Chosen(Message):
        """A row was clicked."""

        def __init__(self, n: int) -> None:
            super().__init__()
            self.n = n

    class Wanted(Message):
        """Rows are on the screen that are not made yet."""

        def __init__(self, numbers: list[int]) -> None:
            super().__init__()
            self.numbers = numbers

    def __init__(self, run: OpenRun) -> None:
        super().__init__()
        self.opened = run
        self.virtual_size = Size(1, len(run.rows))

    def show_run(self, run: OpenRun, n: int) -> None:
        """Show another run."""
        self.opened = run
        self.virtual_size = Size(1, len(run.rows))
        self.set_reactive(RowList.cursor, -1)
        self.cursor = n

    def watch_cursor(self, before: int, n: int) -> None:
        """Scroll no further than needed, and draw the two rows that change."""
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if not top <= n < top + height:
            target = n if n < top else n - height + 1
            self.scroll_to(y=target, animate=False, immediate=True)
        self.fill()
        self.refresh()

    def fill(self) -> None:
        """Make the rows on the screen, as far as the time of one frame goes."""
        top, height = self.scroll_offset.y, self.size.height
        shown = range(top, min(top + height, len(self.opened.rows)))
        if left := self.opened.rows.fill(shown, _AT_ONCE):
            self.post_message(self.Wanted(left))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Make the rows that came into sight."""
        super().watch_scroll_y(old_value, new_value)
        self.fill()

    def on_resize(self) -> None:
        """Lay the rows out for the new width."""
        self.opened.rows.fit(self.app.size.width)
        self.watch_cursor(self.cursor, self.cursor)

    def on_click(self, event: object) -> None:
        """Select the row that was clicked."""
        n = self.scroll_offset.y + int(getattr(event, "y", 0))
        if 0 <= n < len(self.opened.rows):
            self.post_message(self.Chosen(n))

    def render_line(self, y: int) -> Strip:
        """Return one line of the screen."""
        n, width = self.scroll_offset.y + y, self.size.width
        if n >= len(self.opened.rows):
            return Strip.blank(width)
        text = self.opened.rows.line(n, self.opened.marks, is_here=n == self.cursor)
        return strip(text, self.app.console, width)
