"""Fork a recorded crew at one of its tasks, and find the task that made it fail.

Both functions need a new crew or flow for each run, so they take a factory (`lambda:
MyCrew().crew()`): a crew that has run once sends other requests the next time.
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
"""The kinds of steps that blame ranks first; it ranks their exchanges after that."""


@dataclass(frozen=True, slots=True)
class Kickoff:
    """Makes a new crew or flow and kicks it off, with the same inputs at each call."""

    make: Callable[[], Any]
    inputs: Mapping[str, object] | None = None

    def __call__(self) -> Any:
        """Return what the kickoff returns."""
        return self.make().kickoff(inputs=None if self.inputs is None else dict(self.inputs))


def fork(
    tape: str | Path, at_task: str | int, replace: str | None = None, **options: Any
) -> AbstractContextManager[Forking]:
    """Replay the crew in the block up to a task, change that task, and continue live.

    Only what depends on the change runs live. Everything else, tools too, is answered from the
    tape.

    Args:
        tape: the tape of the run.
        at_task: the task by its name ("write", or "write:2" for the second of that name), or by its
            position among all tasks of the run, from 0.
        replace: the new final answer of the task's agent; None runs the task again.
        options: for `tracefork_core.fork`.

    Raises:
        UsageError: there is no such tape, no such task, or the task made no exchange.
    """
    with Tape.open(tape) as opened:
        task = _named(opened, at_task)
        under = [call.n for call in opened.exchanges if any(step.id == task for step in call.steps)]
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
        oracle: returns whether the run was good, given what the kickoff returned.
        inputs: the inputs of the recorded kickoff.
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
        matches = tasks[at : at + 1] if at >= 0 else []
    else:
        name, _, nth = at.rpartition(":")
        matches = [step for step in tasks if step.name == at]
        if not matches and nth.isdecimal() and int(nth) > 0:
            matches = [step for step in tasks if step.name == name][int(nth) - 1 :]
    if not matches:
        names = ", ".join(step.name for step in tasks) or "none"
        raise UsageError(
            f"tracefork: {tape.path} has no task {at!r}. Its tasks: {names}. To list everything "
            f"else that you can fork, run: tracefork show {tape.path}"
        )
    return matches[0].id
