"""What a check found: one verdict for each tape, and what else is wrong with the folder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from tracefork_core.errors import Divergence

UNTESTABLE = 125
"""The exit code for "cannot be tested": `git bisect run` skips the commit."""


class Verdict(StrEnum):
    """What is known of a tape: it replays, it does not, or that could not be found out."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    UNDECIDED = "undecided"


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The check of one tape.

    Attributes:
        name: the file name of the tape.
        verdict: pass, fail or undecided.
        exit: the exit code that a replay of this tape alone has.
        reason: why it did not pass, in one line.
        missing: what is missing for a verdict.
        exact: whether each replayed byte is the recorded one; matchers may allow others.
        exchanges, of: how many exchanges were replayed, and how many the tape holds.
        sockets: how many connections were let through.
        programs: programs that were started and that are not Python.
        seconds: how long the replay took.
        divergence: where the run left the tape.
        live: what live runs said, if there were any.
        said: the end of what the agent wrote to stderr.
    """

    name: str
    verdict: Verdict
    exit: int = 0
    reason: str = ""
    missing: str = ""
    exact: bool = False
    exchanges: int | None = None
    of: int = 0
    sockets: int = 0
    programs: list[str] = []
    seconds: float = 0.0
    divergence: Divergence | None = None
    live: str = ""
    said: list[str] = []

    @property
    def place(self) -> tuple[str, int] | None:
        """The file and the line of the agent that a failure belongs to, if it is known."""
        caller = self.divergence.caller if self.divergence else None
        where = (caller or "").partition(" ")[0]
        file, _, line = where.rpartition(":")
        return (file, int(line)) if file and line.isdecimal() else None


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The check of a folder.

    Attributes:
        folder: the folder.
        checks: the check of each tape, in the order of their names.
        orphans: tapes in the folder that no entry names.
        closed: what keeps the network closed: "kernel", or "python" for Python processes alone.
        seconds: how long it all took.
    """

    folder: Path
    checks: list[Checked]
    orphans: list[str]
    closed: str
    seconds: float

    def of(self, verdict: Verdict) -> list[Checked]:
        """Return the tapes with a verdict."""
        return [one for one in self.checks if one.verdict == verdict]

    @property
    def exit(self) -> int:
        """The exit code: that of the first failure, or 125 if something cannot be tested."""
        if failed := self.of(Verdict.FAIL):
            return failed[0].exit
        return UNTESTABLE if self.of(Verdict.UNDECIDED) or not self.checks else 0

    @property
    def verdict(self) -> Verdict:
        """The verdict on the folder. An empty folder proves nothing."""
        if self.of(Verdict.FAIL):
            return Verdict.FAIL
        return Verdict.UNDECIDED if self.exit else Verdict.PASS

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "exit": self.exit,
            "verdict": self.verdict,
            "folder": str(self.folder),
            "closed_by": self.closed,
            "seconds": self.seconds,
            "counts": {verdict.value: len(self.of(verdict)) for verdict in Verdict},
            "orphans": self.orphans,
            "tapes": [msgspec.to_builtins(one) for one in self.checks],
        }
