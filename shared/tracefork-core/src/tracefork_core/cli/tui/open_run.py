"""One tape as the view shows it, with what is known about it so far."""

from __future__ import annotations

import shlex
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tracefork_core.cli import tape_names
from tracefork_core.cli.display import figures
from tracefork_core.cli.display.imported import ENDS
from tracefork_core.cli.tui.marks import Marks
from tracefork_core.cli.tui.rows import Rows
from tracefork_core.tape import Exchange, Tape

if TYPE_CHECKING:
    from tracefork_core.cli.report.document import Finding

_NAME = 32
"""The most of a name that the first line shows: its end."""


class OpenRun:
    """A tape that is open, its rows and its marks.

    Raises:
        TapeError: the tape cannot be read.
    """

    def __init__(self, path: Path, width: int) -> None:
        self.path = path
        self.shown = tape_names.shown(path)
        self.tape = Tape.open(path)
        try:
            self.exchanges: list[Exchange] = self.tape.exchanges
            self.rows = Rows(self.exchanges, width)
        except BaseException:
            self.tape.close()
            raise
        self.marks = Marks()

    def close(self) -> None:
        """Close the tape, once no thread is reading it."""
        self.tape.close()

    @cached_property
    def title(self) -> str:
        """The name of the run, how long it is, and how it ended."""
        return head(self.tape, self.shown)

    def finding(self) -> Finding:
        """Return what the run came to: which step failed and how sure, once its marks are found."""
        from tracefork_core.cli.report.evidence import finding

        errors = {str(n): self.marks.errors[n] for n in sorted(self.marks.errors)}
        return finding(self.tape, self.marks.report, errors, self.shown, content=True)

    def show(self, n: int) -> str:
        """Return the command that shows an exchange."""
        return f"tracefork show {shlex.quote(self.shown)} {n}"

    def fork(self, n: int) -> str:
        """Return the command that forks at an exchange."""
        return f"tracefork fork {shlex.quote(self.shown)} --at {n}"


def head(tape: Tape, shown: str) -> str:
    """Return the first line of the screen."""
    shown = shown if len(shown) <= _NAME else f"…{shown[1 - _NAME :]}"
    count = figures.several(len(tape.exchanges), "exchange")
    receipt = tape.receipt
    if not tape.complete:
        return f"{shown} · {count} · not closed: r reads on"
    if receipt is None:
        return f"{shown} · {count}"
    end = f"ended with {receipt.outcome}" if receipt.has_failed else ENDS[receipt.outcome]
    return f"{shown} · {count} · {figures.duration(receipt.took / 1e9)} · {end}"
