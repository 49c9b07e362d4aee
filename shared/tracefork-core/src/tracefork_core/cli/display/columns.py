"""Lay out rows in columns, a line each, before all of them are known.

A table of 10,000 rows is measured by its first ones, so that the first screen appears at once. The
columns keep their widths after that, and what is longer is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells, set_cell_size

from tracefork_core.cli.display import screen

if TYPE_CHECKING:
    from rich.text import Text

_GAP = " "
_ELLIPSIS = "…"
_LEAST = 8
"""The least width of a column of words."""
_ROOM = 20
"""The least width of the column that takes the rest, if the others can give way for it."""
_STEP = " ▸ "
"""What separates the steps of a path: a path is cut between two of them."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A printable text, and the style that it is shown in."""

    text: str
    style: str = "default"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        title: the words above it.
        right: whether its cells are aligned right.
        share: the most of the screen that it takes; None for as much as its cells need.
        rest: whether it takes what the others leave. One column does.
        keeps_end: whether what is too long is cut at its beginning.
        always: whether it is shown where all its cells are the same, too.
        is_in_head: whether what all its cells that are not empty say is told above the table.
    """

    title: str
    right: bool = False
    share: float | None = None
    rest: bool = False
    keeps_end: bool = False
    always: bool = False
    is_in_head: bool = False


class Columns:
    """The columns that a table shows, with their widths.

    A column whose cells are all the same says nothing about a row, so it is left out. So is one
    whose cells all read the same once they are cut.

    Args:
        columns: the columns, one of which takes the rest.
        sample: the first rows, which the widths are measured by.
        width: of the screen, in cells.
    """

    def __init__(self, columns: Sequence[Column], sample: Sequence[Sequence[Cell]], width: int):
        told = [_tells(column, [row[i].text for row in sample]) for i, column in enumerate(columns)]
        self._lay_out(columns, [i for i, is_told in enumerate(told) if is_told], sample, width)
        same = {
            i
            for i, size in zip(self._shown, self._widths, strict=True)
            if _reads_alike(columns[i], [row[i].text for row in sample], size)
        }
        if same:
            shown = [i for i in self._shown if i not in same]
            self._lay_out(columns, shown, sample, width)

    def _lay_out(
        self,
        columns: Sequence[Column],
        shown: Sequence[int],
        sample: Sequence[Sequence[Cell]],
        width: int,
    ) -> None:
        self._shown = shown
        self._columns = [columns[i] for i in shown]
        natural = [
            max([cell_len(columns[i].title), *(cell_len(row[i].text) for row in sample)])
            for i in shown
        ]
        self._widths = [
            size if column.share is None else min(size, max(_LEAST, int(width * column.share)))
            for size, column in zip(natural, self._columns, strict=True)
        ]
        open_ = next(i for i, column in enumerate(self._columns) if column.rest)
        gaps = len(_GAP) * (len(self._widths) - 1)
        room = width - gaps - min(natural[open_], _ROOM)
        shared = [i for i, column in enumerate(self._columns) if column.share is not None]
        self._widths[open_] = 0
        while sum(self._widths) > room and shared:
            widest = max(shared, key=self._widths.__getitem__)
            if self._widths[widest] <= _LEAST:
                break
            self._widths[widest] -= 1
        self._widths[open_] = max(width - gaps - sum(self._widths), _LEAST)

    def head(self) -> list[Text]:
        """Return the line of titles and the line below it."""
        titles = [Cell(column.title, screen.DIM) for column in self._columns]
        width = sum(self._widths) + len(_GAP) * (len(self._widths) - 1)
        from rich.text import Text

        return [self._line(titles), Text("─" * width, screen.DIM)]

    def line(self, row: Sequence[Cell]) -> Text:
        """Return a row as one line."""
        return self._line([row[i] for i in self._shown])

    def plain(self, row: Sequence[Cell] | None = None) -> str:
        """Return a row, or the titles, as one line without styles."""
        titles = [Cell(column.title) for column in self._columns]
        shown = titles if row is None else [row[i] for i in self._shown]
        return "".join(cell.text for cell in self._fitted(shown)).rstrip()

    def _line(self, cells: Sequence[Cell]) -> Text:
        from rich.text import Text

        line = Text(no_wrap=True, end="")
        for cell in self._fitted(cells):
            line.append(cell.text, cell.style)
        line.rstrip()
        return line

    def _fitted(self, cells: Sequence[Cell]) -> Iterator[Cell]:
        """Yield cells that take the widths of their columns, and the gaps between them."""
        for i, (cell, column, width) in enumerate(
            zip(cells, self._columns, self._widths, strict=True)
        ):
            if i:
                yield Cell(_GAP)
            fills = i < len(cells) - 1
            yield Cell(_fitted(cell.text, column, width, fills=fills), cell.style)


def _tells(column: Column, texts: Sequence[str]) -> bool:
    """Return whether a column says something about a row."""
    if len(texts) == 1:
        return column.always or bool(texts[0] and not column.is_in_head)
    different = set(texts) - ({""} if column.is_in_head else set())
    return column.always or len(different) > 1


def _reads_alike(column: Column, texts: Sequence[str], width: int) -> bool:
    """Return whether all cells of a column read the same because they are cut."""
    if column.always or column.rest or len(texts) < 2:
        return False
    cut = {_fitted(text, column, width, fills=False) for text in texts}
    return len(cut) == 1 and len(set(texts)) > 1


def _fitted(text: str, column: Column, width: int, *, fills: bool) -> str:
    """Return a text that takes `width` cells."""
    size = cell_len(text)
    if size > width:
        if column.keeps_end:
            kept = chop_cells(text[::-1], width - 1)[0][::-1] if width > 1 else ""
            text = _ELLIPSIS + kept[max(kept.find(_STEP), 0) :]
        else:
            text = set_cell_size(text, width - 1) + _ELLIPSIS
        size = cell_len(text)
    if column.right:
        return " " * (width - size) + text
    return text + " " * (width - size if fills else 0)
