"""The runs of `tracefork race`: each order in a fresh process, and what is to be said of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import msgspec

from tracefork_core.cli.raced import Came, Job
from tracefork_core.run.racing import Order, Outcome

_PATIENCE, _TIMES = 60.0, 10.0
"""How long another order may take: a minute, and ten times as long as the recorded one."""
_TAIL = 20
_STDOUT, _STDERR = "stdout", "stderr"


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `came` is None where the process left no result."""

    came: Came | None
    status: int | None
    printed: list[str]
    stderr: list[str]
    seconds: float

    def failure(self, outcome: str | None, exchanges: int) -> tuple[int, str] | None:
        """Return exit code and reason, where this is not what was recorded.

        `outcome` is how the recorded agent ended, None where the recording was cut off.
        """
        came = self.came
        if came is None:
            return 3, f"the replay ended without a result, with status {self.status}"
        if came.divergence is not None:
            return 1, came.divergence.summary
        if came.error is not None:
            return came.error
        if came.status == 130 or (came.ending != "ok" and came.ending != outcome):
            return 3, f"the agent failed by itself with {came.ending}"
        if came.exchanges != exchanges:
            return 3, f"the agent failed with {came.ending} before it asked for everything"
        if outcome is not None and came.ending != outcome:
            return 1, f"the agent ended well now; when recorded it ended with {outcome}"
        return None


@dataclass(slots=True)
class Runs:
    """Carries orders out. `first` is the run in the recorded order that others are held against."""

    job: Job
    folder: Path
    place: Path
    environment: Mapping[str, str]
    first: Run | None = None
    prints_compared: bool = True
    done: int = field(default=0, init=False)

    def attempt(self, order: Order) -> Outcome:
        """Carry one order out and say how it differs from the recorded one."""
        assert self.first is not None
        numbers = order if isinstance(order, int) else list(order)
        return self._outcome(self.first, self.run(numbers))

    def run(self, order: int | list[int] | None) -> Run:
        """Replay in a process of its own."""
        self.done += 1
        job, result = self.place / "job.json", self.place / "result.json"
        result.unlink(missing_ok=True)
        job.write_bytes(msgspec.json.encode(msgspec.structs.replace(self.job, order=order)))
        command = [sys.executable, "-m", "tracefork_core.cli.raced", str(job), str(result)]
        began = time.monotonic()
        # Files, not pipes: a process that the agent left behind would hold a pipe open.
        with (self.place / _STDOUT).open("wb") as out, (self.place / _STDERR).open("wb") as err:
            try:
                status: int | None = subprocess.run(  # noqa: S603 - our own command line
                    command,
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    timeout=_PATIENCE + _TIMES * self.first.seconds if self.first else None,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                status = None
        came = None
        if status == 0 and result.exists():
            came = msgspec.json.decode(result.read_bytes(), type=Came)
        printed, said = self._lines(_STDOUT), self._lines(_STDERR)[-_TAIL:]
        return Run(came, status, printed, said, time.monotonic() - began)

    def _lines(self, name: str) -> list[str]:
        return (self.place / name).read_bytes().decode("utf-8", "backslashreplace").splitlines()

    def _outcome(self, first: Run, run: Run) -> Outcome:
        came, then = run.came, first.came
        assert then is not None
        if came is None:
            how = "does not end" if run.status is None else f"status {run.status}, no result"
            return Outcome("ends", how, then.ending)
        completed = tuple(came.completed)
        if (found := came.divergence) is not None:
            number = "after the last exchange" if found.n is None else f"exchange {found.n}"
            place = found.pointer or found.summary
            recorded, now = found.recorded or "", found.actual or ""
            return Outcome("asks", f"{number} {place}", recorded, now, completed)
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
