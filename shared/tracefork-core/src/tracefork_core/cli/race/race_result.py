"""The result of a search for races."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracefork_core.cli.race.race_runs import Run
    from tracefork_core.run.racing import Found, Overlap

NO_RACE, RACE = 0, 1


@dataclass(frozen=True, slots=True)
class Taped:
    """What the search reads from a tape.

    Attributes:
        path: the tape.
        outcome: how the recorded agent ended; None if the recording was cut off.
        exchanges: the number of recorded exchanges.
        overlap: the exchanges that overlapped.
        words: the overlapping exchanges in words, by number.
        status: its exit status, if it ended with a `SystemExit`.
    """

    path: Path
    outcome: str | None
    exchanges: int
    overlap: Overlap
    words: dict[int, str]
    status: int | None = None

    def failure(self, run: Run) -> tuple[int, str] | None:
        """Return an exit code and a reason if a run differs from the recording."""
        return run.failure(self.outcome, self.exchanges, self.status)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of all runs.

    Attributes:
        taped: the tape.
        runs: the number of runs.
        seconds: the duration of all runs.
        failure: the run in the recorded order, if it differed from the recording. No other order
            was tried then.
        prints_compared: whether the output was compared. It is not if equal runs print differently.
        found: the result of the search; None if nothing overlaps.
        again: the arguments that follow `tracefork replay --order …`.
    """

    taped: Taped
    runs: int
    seconds: float
    again: str
    failure: Run | None = None
    prints_compared: bool = True
    found: Found | None = None

    @property
    def exit(self) -> int:
        """The exit code."""
        if self.failure is not None:
            why = self.taped.failure(self.failure)
            assert why is not None
            return why[0]
        return RACE if self.found and self.found.smallest else NO_RACE
