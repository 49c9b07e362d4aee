"""Put a recorded crew on trial: go on from one of its tasks, and find which of them made it fail.

Both make a crew, or a flow, of their own for each run, from a factory (`lambda: MyCrew().crew()`):
a crew that ran once asks otherwise the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tracefork_core as tracefork
from tracefork_core import Forking, Report, Resample, Tape, UsageError

BY = ("task", "agent")
"""Steps that are told apart first; what they asked is, after that."""


@dataclass(frozen=True, slots=True)
class Kickoff:
    """Kicks a new crew or flow off, with the same inputs each time it is called."""

    make: Callable[[], Any]
    inputs: Mapping[str, object] | None = None

    def __call__(self) -> Any:
        """Return what the kickoff returns."""
        return self.make().kickoff(inputs=None if self.inputs is None else dict(self.inputs))


def fork(
    tape: str | Path, at_task: str | int, replace: str | None = None, **options: Any
) -> AbstractContextManager[Forking]:
    """Run the crew inside as recorded up to a task, which is done otherwise, and on from there.

    What the change makes no difference to is answered from the tape, tools too: live is only what
    depends on it.

    Args:
        tape: the tape of the run.
        at_task: the task by its name ("write", or "write:2" for the second of that name), or by its
            place among all tasks of the run, from 0.
        replace: what the task's agent says in the end instead; None has the task done once more.
        options: for `tracefork_core.fork`.

    Raises:
        UsageError: there is no such tape, or no such task that asked for anything.
    """
    with Tape.open(tape) as opened:
        task = _named(opened, at_task)
        under = [one.n for one in opened.exchanges if any(step.id == task for step in one.steps)]
    options = {"reuse": True, **options}
    if replace is not None:
        return tracefork.fork(tape, f"{task}:answer", replace, **options)
    return tracefork.fork(tape, task, change={n: Resample() for n in under}, **options)


def blame(
    tape: str | Path,
    make: Callable[[], Any],
    oracle: Callable[[Any], object],
    *,
    inputs: Mapping[str, object] | None = None,
    **options: Any,
) -> Report:
    """Find the task that made a run fail, then the agent, model call or tool in it, by forks.

    Args:
        tape: the tape of a run that failed.
        make: makes the crew, or the flow, that was recorded.
        oracle: given what the kickoff returned, says whether the run was good.
        inputs: what it was kicked off with.
        options: for `tracefork_core.blame`.

    Raises:
        UsageError: there is no such tape, nothing on it to blame, or the budget cannot be kept.
        TapeError: the tape or the journal is corrupt.
    """
    return tracefork.blame(tape, Kickoff(make, inputs), oracle, **{"by": BY, **options})


def _named(tape: Tape, at: str | int) -> str:
    """Return the id of the task's step."""
    tasks = [step for step in tape.steps if step.kind == "task"]
    if isinstance(at, int):
        found = tasks[at : at + 1] if at >= 0 else []
    else:
        name, _, nth = at.rpartition(":")
        found = [step for step in tasks if step.name == at]
        if not found and nth.isdecimal() and int(nth) > 0:
            found = [step for step in tasks if step.name == name][int(nth) - 1 :]
    if not found:
        names = ", ".join(step.name for step in tasks) or "none"
        raise UsageError(
            f"tracefork: {tape.path} has no task {at!r}. Its tasks: {names}. What else can be "
            f"forked: tracefork show {tape.path}."
        )
    return found[0].id
