"""The rows of the timeline, made when they are on the screen.

A row holds words of the answer, so its bodies are read and decoded: of 10,000 exchanges that takes
seconds, of a screen of them milliseconds.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tracefork_core.cli.display import screen
from tracefork_core.cli.display.columns import Cell, Columns
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.display.timeline import COLUMNS, row
from tracefork_core.cli.tui.marks import STYLES, WIDTH, Marks
from tracefork_core.errors import TraceforkError
from tracefork_core.providers import model_call
from tracefork_core.tape import Exchange

if TYPE_CHECKING:
    from rich.text import Text

_KEPT = 4_000
_SAMPLE = 32
_LANES = 8
_GUTTER = 2 + WIDTH + 1
_SCROLLBAR = 1
_HERE, _ELSEWHERE = "▸ ", "  "


class Rows:
    """The rows of one run. A row that is not made yet has its number only."""

    def __init__(self, exchanges: Sequence[Exchange], width: int) -> None:
        self._exchanges = exchanges
        self._made: OrderedDict[int, list[Cell]] = OrderedDict()
        self._took = 0.0
        first: dict[str, int] = {}
        for exchange in exchanges:
            if exchange.lane not in first and len(first) < _LANES:
                first[exchange.lane] = exchange.n
        self._sample = [*range(min(_SAMPLE, len(exchanges))), *first.values()]
        self.fit(width)

    def __len__(self) -> int:
        return len(self._exchanges)

    def fit(self, width: int) -> None:
        """Lay the columns out for another width."""
        self.fill(self._sample)
        sample = [self._made[n] for n in self._sample] or [[Cell("") for _ in COLUMNS]]
        sample.append([Cell(str(len(self._exchanges) - 1)), *sample[0][1:]])
        self._columns = Columns(COLUMNS, sample, max(1, width - _GUTTER - _SCROLLBAR))

    def fill(self, numbers: Iterable[int], seconds: float | None = None) -> list[int]:
        """Make rows, for so many seconds at most; return the numbers of those that are left.

        A row is left, too, if it would end too late by the time that the last one took.
        """
        until = None if seconds is None else time.monotonic() + seconds
        left = []
        for n in numbers:
            if n in self._made:
                continue
            began = time.monotonic()
            if until is not None and began + self._took > until:
                left.append(n)
                continue
            self._made[n] = _row(self._exchanges[n])
            self._took = time.monotonic() - began
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return left

    def head(self) -> Text:
        """Return the line of titles."""
        from rich.text import Text

        return Text(" " * _GUTTER, end="").append_text(self._columns.head()[0])

    def line(self, n: int, marks: Marks, *, is_here: bool) -> Text:
        """Return a row as a line: whether it is selected, its mark, its cells."""
        from rich.text import Text

        word = marks.word(n)
        line = Text(_HERE if is_here else _ELSEWHERE, end="", no_wrap=True)
        line.append(f"{word:<{WIDTH}.{WIDTH}} ", STYLES.get(word, "default"))
        cells = self._made.get(n)
        if cells is None:
            return line.append(f"{n} …")
        line.append_text(self._columns.line(cells))
        if is_here:
            line.stylize("reverse")
        return line

    def plain(self) -> list[str]:
        """Return the titles and all rows as lines without styles, the first row selected."""
        lines = [" " * _GUTTER + self._columns.plain()]
        for n in range(len(self)):
            here = f"{_ELSEWHERE if n else _HERE:<{_GUTTER}}"
            lines.append(here + self._columns.plain(self._made[n]))
        return lines


def _row(exchange: Exchange) -> list[Cell]:
    """Return the cells of an exchange; of one that is corrupt, the error in place of its words."""
    try:
        return row(exchange, model_call(exchange), None)
    except TraceforkError as error:
        words = printable(str(error).removeprefix("tracefork: "))
        head = [Cell(str(exchange.n)), Cell(printable(exchange.lane))]
        return [*head, Cell(""), Cell(""), Cell(f"✗ {words}", screen.BAD), *[Cell("")] * 3]
