"""The result of a measurement: rows of numbers with their spread, as a table or as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS: tuple[tuple[str, Literal["left", "right"]], ...] = (
    ("case", "left"),
    ("variant", "left"),
    ("median", "right"),
    ("quartiles", "right"),
    ("n", "right"),
    ("compared", "right"),
    ("aim", "right"),
    ("", "left"),
)
_VERDICTS = {None: "", True: "met", False: "missed"}


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of `n` samples and their quartiles."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Return the spread of at least one sample."""
        if len(samples) == 1:
            return cls(samples[0], samples[0], samples[0], 1)
        low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
        return cls(median, low, high, len(samples))


@dataclass(frozen=True, slots=True)
class Row:
    """One number.

    Args:
        compared: the number beside that of the plain client or the limit.
        target: the aim, if there is one; `met` says whether it was met.
    """

    case: str
    who: str
    spread: Spread
    unit: str
    compared: str = ""
    target: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Return all cells except the case, as text."""
        spread = self.spread
        return (
            self.who,
            f"{_number(spread.median)} {self.unit}",
            f"{_number(spread.low)} .. {_number(spread.high)}" if spread.n > 1 else "",
            str(spread.n),
            self.compared,
            self.target,
            _VERDICTS[self.met],
        )


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measurement: its method and its rows."""

    title: str
    method: str
    rows: Sequence[Row]

    def document(self) -> dict[str, object]:
        """Return everything as JSON-able values."""
        return asdict(self)

    def table(self) -> Table:
        """Return everything as a table for people."""
        from rich import box
        from rich.table import Table

        table = Table(
            title=self.title,
            caption=self.method,
            title_justify="left",
            caption_justify="left",
            box=box.SIMPLE_HEAD,
        )
        for name, justify in _COLUMNS:
            table.add_column(name, justify=justify, no_wrap=True)
        for case, rows in groupby(self.rows, lambda row: row.case):
            table.add_section()
            for i, row in enumerate(rows):
                table.add_row("" if i else case, *row.cells())
        return table


def _number(value: float) -> str:
    """Format a number with three significant digits and thousands separators."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
