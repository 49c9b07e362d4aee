"""What the runs of a hunt for races came to."""

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
    """What a tape says: how its agent ended, what overlapped, and those exchanges in words."""

    path: Path
    outcome: str | None
    exchanges: int
    overlap: Overlap
    words: dict[int, str]


@dataclass(frozen=True, slots=True)
class Result:
    """What the runs came to.

    Attributes:
        taped: the tape.
        runs: how many runs there were.
        seconds: how long all of them took.
        failure: the run in the recorded order that was not the recorded one: nothing was tried.
        prints_compared: whether what the agent prints is alike in equal runs, so that it counts.
        found: what the search came to; None where nothing overlaps.
        again: what to type behind `tracefork replay --order …`.
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
            why = self.failure.failure(self.taped.outcome, self.taped.exchanges)
            assert why is not None
            return why[0]
        return RACE if self.found and self.found.smallest else NO_RACE
