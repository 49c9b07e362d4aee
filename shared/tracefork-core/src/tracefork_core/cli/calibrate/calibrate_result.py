"""The result of a calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracefork_core.cli.exits import DIFFERENT, SAME

if TYPE_CHECKING:
    from tracefork_core.explaining.findings import Finding


@dataclass(frozen=True, slots=True)
class Result:
    """The result of all runs.

    Attributes:
        live: the number of live runs.
        exchanges: the number of exchanges in the first recording.
        replays: the number of proven replays, and of all replays.
        findings: the differences, with their causes.
        unseen: sources outside the boundary that a run drew from, but that no finding names.
    """

    live: int
    exchanges: int
    replays: tuple[int, int]
    findings: list[Finding]
    unseen: list[str]

    @property
    def proven(self) -> bool:
        """Whether every replay was proven to be the recorded run."""
        return self.replays[0] == self.replays[1]

    @property
    def exit(self) -> int:
        """The exit code."""
        return SAME if self.proven else DIFFERENT
