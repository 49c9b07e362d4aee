"""What stands out in a run: errors, steps that blame names, and how a branch was answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracefork_core.cli.display import screen
from tracefork_core.errors import TraceforkError
from tracefork_core.providers import model_call
from tracefork_core.tape import Exchange, Tape

if TYPE_CHECKING:
    from tracefork_core.blaming.report import Report

WIDTH = 8
"""The longest word of a mark: DIVERGED."""
STYLES = {
    "error": screen.BAD,
    "blamed": screen.BAD,
    "likely": screen.WARN,
    "passed on": screen.WARN,
}


@dataclass(slots=True)
class Marks:
    """The marks of a run, as far as it was read.

    Attributes:
        errors: what went wrong, by the number of the exchange.
        blamed: what blame says of an exchange.
        branch: how each exchange of a branch was answered: FREE, EDITED, DIVERGED, LIVE.
        read: how many exchanges were searched for errors.
        report: the last blame of the run, if there was one.
    """

    errors: dict[int, str] = field(default_factory=dict)
    blamed: dict[int, str] = field(default_factory=dict)
    branch: Sequence[str] = ()
    read: int = 0
    report: Report | None = None

    def word(self, n: int) -> str:
        """Return the most telling mark of an exchange; empty if it has none."""
        if n in self.blamed:
            return self.blamed[n]
        if n in self.errors:
            return "error"
        return self.branch[n] if n < len(self.branch) else ""

    def next(self, n: int, way: int) -> int | None:
        """Return the nearest error or blamed exchange after `n`, or before it if `way` is -1."""
        places = sorted({*self.errors, *self.blamed})
        if way < 0:
            return next((place for place in reversed(places) if place < n), None)
        return next((place for place in places if place > n), None)

    def add_blame(self, report: Report) -> None:
        """Mark the exchanges that a blame names."""
        verdict = report.result.verdict
        self.report = report
        self.blamed = dict.fromkeys(verdict.mediators, "passed")
        self.blamed |= dict.fromkeys(verdict.units, "blamed" if verdict.certain else "likely")

    def add(self, exchange: Exchange) -> None:
        """Note whether an exchange ended with an error."""
        from tracefork_core.cli.report.timeline import error_of

        try:
            error = error_of(exchange, model_call(exchange), content=True)
        except TraceforkError as corrupt:
            error = str(corrupt).removeprefix("tracefork: ")
        if error is not None:
            self.errors[exchange.n] = error
        self.read = exchange.n + 1


def find(tape: Tape, marks: Marks, pause: Callable[[], bool]) -> None:
    """Fill in the marks of a run: blame and branch first, then each exchange.

    `pause` is called after each exchange, and returns whether to stop.
    """
    from tracefork_core.blaming.last_blame import last_blame
    from tracefork_core.cli.report.branch_strip import cells

    if tape.origin is not None:
        marks.branch = cells(tape, tape.origin.at)
    if (report := last_blame(tape)) is not None:
        marks.add_blame(report)
    for exchange in tape.exchanges:
        marks.add(exchange)
        if pause():
            return
