"""What the runs of an agent that is calibrated came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracefork_core.cli.exits import DIFFERENT, SAME

if TYPE_CHECKING:
    from tracefork_core.explaining.findings import Finding


@dataclass(frozen=True, slots=True)
class Result:
    """What the runs of an agent came to.

    Attributes:
        live: how many live runs there were.
        exchanges: how many exchanges the first recording holds.
        replays: how many of the replays were proven, and how many there were.
        findings: what differed, and why.
        unseen: what was drawn outside by some run and shows in no exchange.
    """

    live: int
    exchanges: int
    replays: tuple[int, int]
    findings: list[Finding]
    unseen: list[str]

    @property
    def proven(self) -> bool:
        """Whether every replay was the run."""
        return self.replays[0] == self.replays[1]

    @property
    def exit(self) -> int:
        """The exit code."""
        return SAME if self.proven else DIFFERENT
