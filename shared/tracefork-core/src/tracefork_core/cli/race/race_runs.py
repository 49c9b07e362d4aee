"""The runs of `tracefork race`: replay each order in a fresh process, and compare its outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import msgspec

from tracefork_core.cli.agent import child_python, ending
from tracefork_core.cli.exits import DIFFERENT, FAILED
from tracefork_core.cli.race.race_worker import Came, Job
from tracefork_core.run.racing import Order, Outcome

_PATIENCE, _TIMES = 60.0, 10.0
"""The time limit of an order: 60 seconds, plus 10 times the duration of the recorded order."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run; `came` is None if the process left no result."""

    came: Came | None
    status: int | None
    printed: list[str]
    stderr: list[str]
    seconds: float

    def failure(
        self, outcome: str | None, exchanges: int, status: int | None
    ) -> tuple[int, str] | None:
        """Return an exit code and a reason if this run differs from the recording.

        `outcome` is how the recorded agent ended, None if the recording was cut off. `status` is
        its exit status, if it ended with a `SystemExit`.
        """
        came = self.came
        if came is None:
            return FAILED, child_python.without_result(self.status)
        if came.divergence is not None:
            return DIFFERENT, came.divergence.summary
        if came.error is not None:
            return came.error
        return ending.failure(came.ending, came.status, came.exchanges, exchanges, outcome, status)


@dataclass(slots=True)
class Runs:
    """Replays in given orders, and compares each run with `first`, that in the recorded order."""

    job: Job
    folder: Path
    place: Path
    environment: Mapping[str, str]
    first: Run | None = None
    prints_compared: bool = True
    done: int = field(default=0, init=False)

    def attempt(self, order: Order) -> Outcome:
        """Replay in an order, and return how the run differs from `first`."""
        assert self.first is not None
        numbers = order if isinstance(order, int) else list(order)
        return self._outcome(self.first, self.run(numbers))

    def run(self, order: int | list[int] | None) -> Run:
        """Replay in a fresh process; None is the recorded order."""
        self.done += 1
        job, result = self.place / "job.json", self.place / "result.json"
        result.unlink(missing_ok=True)
        child_python.leave(job, msgspec.structs.replace(self.job, order=order))
        command = ["tracefork_core.cli.race.race_worker", str(job), str(result)]
        timeout = _PATIENCE + _TIMES * self.first.seconds if self.first else None
        began = time.monotonic()
        process = child_python.start(command, self.folder, self.environment, timeout)
        seconds = time.monotonic() - began
        came = None
        if process.status == 0 and result.exists():
            came = child_python.left(result, Came)
        return Run(came, process.status, process.stdout.splitlines(), process.said, seconds)

    def _outcome(self, first: Run, run: Run) -> Outcome:
        came, then = run.came, first.came
        assert then is not None
        if came is None:
            how = "does not end" if run.status is None else f"status {run.status}, no result"
            return Outcome("ends", how, then.ending)
        completed = tuple(came.completed)
        if (divergence := came.divergence) is not None:
            n = divergence.n
            number = "after the last exchange" if n is None else f"exchange {n}"
            pointer = divergence.pointer or divergence.summary
            recorded, now = divergence.recorded or "", divergence.actual or ""
            return Outcome("asks", f"{number} {pointer}", recorded, now, completed)
        if came.error is not None:
            return Outcome("ends", came.error[1].removeprefix("tracefork: "), "", "", completed)
        if (came.ending, came.status) != (then.ending, then.status):
            how, was = _ending(came), _ending(then)
            return Outcome("ends", how, was, how, completed)
        if self.prints_compared and run.printed != first.printed:
            pairs = zip_longest(first.printed, run.printed, fillvalue="")
            before, now = next((a, b) for a, b in pairs if a != b)
            return Outcome("prints", "", before, now, completed)
        return Outcome("same", completed=completed)


def _ending(came: Came) -> str:
    return f"exit status {came.status}" if came.ending == "SystemExit" else came.ending
