"""One run of `tracefork race`, in a process of its own.

    python -m tracefork_core.cli.race.race_worker JOB RESULT

This replays as the file JOB says, and writes a `Came` to the file RESULT. Stdout is the agent's.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tracefork_core.cli.agent import child_python
from tracefork_core.cli.agent.agent import Agent, Form
from tracefork_core.errors import Divergence, DivergenceError, SurroundingsWarning, TraceforkError

if TYPE_CHECKING:
    from tracefork_core.run.replay import Replaying
    from tracefork_core.run.scope import Scope


class Job(msgspec.Struct, frozen=True):
    """What to replay, and how; `order` is None for the recorded order."""

    tape: str
    form: Form
    target: str
    args: tuple[str, ...]
    match: list[str] = []
    allow: list[str] = []
    mask: list[str] = []
    clock: bool = True
    entropy: bool = True
    subprocesses: bool = True
    order: int | list[int] | None = None


class Came(msgspec.Struct, frozen=True):
    """The result of one run.

    Attributes:
        completed: the exchanges in the order in which their answers were complete.
        exchanges: the number of exchanges that the agent requested.
        ending: "ok", or the class of the exception that ended the agent.
        status: the exit status of the agent.
        divergence: where the run left the tape.
        error: exit code and message of any other error of the replay.
    """

    completed: list[int] = []
    exchanges: int = 0
    ending: str = "ok"
    status: int = 0
    divergence: Divergence | None = None
    error: tuple[int, str] | None = None


def _run(job: Job) -> Came:
    from tracefork_core.run.replay import replay

    agent = Agent(job.form, job.target, job.args)
    agent.prepare()
    warnings.simplefilter("ignore", SurroundingsWarning)
    scope = replay(
        job.tape,
        match=job.match,
        allow=job.allow,
        mask=job.mask,
        clock=job.clock,
        entropy=job.entropy,
        subprocesses=job.subprocesses,
        order=job.order,
        scope="process",
    )
    begun: list[Replaying] = []
    try:
        run, ending = agent.run_under(_kept(scope, begun), show=True)
    except TraceforkError as error:
        completed = begun[0].completed if begun else []
        if isinstance(error, DivergenceError):
            return Came(completed, divergence=error.divergence)
        return Came(completed, error=(error.exit_code, str(error)))
    return Came(run.completed, run.exchanges, ending.outcome, ending.status)


@contextmanager
def _kept(scope: Scope[Replaying], begun: list[Replaying]) -> Iterator[Replaying]:
    """Keep the run in `begun`: it lists the completed exchanges even if it ends with an error."""
    with scope as run:
        begun.append(run)
        yield run


def _main(job: Path, result: Path) -> None:
    try:
        came = _run(child_python.left(job, Job))
    except TraceforkError as error:
        came = Came(error=(error.exit_code, str(error)))
    child_python.leave(result, came)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]))
