"""Run one probe in any process: fork the run and grade its outcome."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from tracefork_core.blaming.engine.probe import Probe, Trial
from tracefork_core.blaming.trials.spending import Spending, Spent, lost_with, set_aside, spent_by
from tracefork_core.errors import DivergenceError, TraceforkError, UnwritableError, UsageError
from tracefork_core.exchange.current import outside
from tracefork_core.explaining.divergence import LEFTOVER
from tracefork_core.inputs.standard_input import without_terminal
from tracefork_core.run.fork import Forking, fork
from tracefork_core.run.scope import Scope
from tracefork_core.session.interventions import Edit, Intervention, Keep
from tracefork_core.session.prepared_exchange import recorded_answer
from tracefork_core.session.side_effects import Writes
from tracefork_core.tape import Exchange, Tape
from tracefork_core.telemetry.work import part_of

Agent: TypeAlias = Callable[[], object]
"""The program to run again: a sync or async function without arguments."""
Oracle: TypeAlias = Callable[[object], object]
"""Takes what the agent returned; returns True for a good run and False for a bad one.

If its attribute `grades_errors` is true, it is also called with what the agent raised. If it has a
method `again(outcome, n)`, that gives the n-th further grade of the same outcome, from 1.
"""


@runtime_checkable
class ModelOracle(Protocol):
    """An oracle that calls a model, and records its calls in the folder of the blame."""

    def placed(self, folder: Path) -> Oracle:
        """Return a copy that records its calls below this folder."""

    def capped(self, calls: int) -> Oracle:
        """Return a copy that makes no more calls after `calls`, counting those of all processes."""

    def spent(self, known: dict[str, list[Spent]]) -> Spending:
        """Return what its grades cost so far; `known` caches the tapes that were read before."""


trial_number: ContextVar[int | None] = ContextVar("tracefork_trial", default=None)
"""Number of the trial that runs here: the seed for an agent that samples from a local model.

Random values and ids in a fork are as recorded, so that only the change makes a difference. A local
model seeded with them would give the same answer in every fork.
"""

_LONGEST = 300


class VerdictError(UsageError):
    """The oracle returned something other than True or False."""


FATAL = (UnwritableError, VerdictError)
"""Errors that end a blame, since every other fork would meet them too."""


class Job(msgspec.Struct, frozen=True):
    """A probe with everything that a worker needs to run it.

    Attributes:
        number: number of the trial.
        probe: the probe.
        tape: path of the tape of the run; branches are written beside it.
        branch: file name of this branch.
        sources: file name of the branch of each trial that a response is given from.
        crash: class name of the exception that ended the recorded run, or None. The same exception
            again is a failure; another one is no outcome.
        writes: as for `fork`.
        reads: as for `fork`.
        calls: maximum live calls, without those `lost`; None for no limit.
        lost: live calls that earlier attempts had made when the batch started.
        mask: as for `fork`.
        credit: whether a good run counts as failed, to find the step that saved it.
        regrades: how many times the outcome is graded again, if all units are held or it is good.
        grading: maximum calls of the oracle in total, including earlier ones; None for no limit.
        tail: as for `fork`.
        alone: whether this process carries out one job at a time, so that a fork can cover it.
        changes: further interventions by exchange. The fork begins at the first of them, and
            requests that equal recorded ones get the recorded answers.
        traceparent: the span of the blame, where it is traced; else "".
    """

    number: int
    probe: Probe
    tape: str
    branch: str
    sources: Mapping[int, str]
    crash: str | None = None
    writes: Writes = "refuse"
    reads: tuple[str, ...] = ()
    calls: int | None = None
    lost: int = 0
    mask: tuple[str, ...] = ()
    credit: bool = False
    regrades: int = 0
    grading: int | None = None
    tail: Edit | None = None
    alone: bool = True
    changes: Mapping[int, Intervention] = {}
    traceparent: str = ""


def branch_name(tape: str, number: int) -> str:
    """Return the name of a trial's branch: it has the tape's own in it, so it is never the same."""
    return f"{Path(tape).stem}~{number}.tape"


def check_functions(agent: object, oracle: object) -> None:
    """Refuse an agent or oracle that is not callable, or whose call would run nothing.

    Raises:
        UsageError: one of them is not a function, or is a generator function.
    """
    for what, given in (("agent", agent), ("oracle", oracle)):
        if not callable(given):
            words = f"tracefork: the {what} of a blame is a function, not {given!r}."
            hint = " Only the command line reads words." if isinstance(given, str) else ""
            raise UsageError(f"{words}{hint}")
        if inspect.isgeneratorfunction(given) or inspect.isasyncgenfunction(given):
            name = getattr(given, "__name__", given)
            raise UsageError(
                f"tracefork: the {what} {name} is a generator, and calling it runs nothing. Name a "
                "function that iterates over it."
            )


def carry_out(job: Job, agent: Agent, oracle: Oracle) -> Trial:
    """Fork the run as the probe says, grade its outcome, and return the trial.

    The cost of earlier attempts whose process died is added to this trial.

    Raises:
        UnwritableError: the branch cannot be written.
        VerdictError: the oracle returned something other than True or False.
    """
    began = time.monotonic()
    to = Path(job.tape).with_name(job.branch)
    set_aside(to)
    lost = lost_with(to)
    if job.grading is not None and isinstance(oracle, ModelOracle):
        oracle = oracle.capped(job.grading)
    failed, undefined, ending = None, None, _Ending()
    grades: tuple[bool, ...] = ()
    try:
        with (
            part_of(job.traceparent),
            without_terminal(),
            _forked(job, to, lost.calls) as run,
        ):
            ending = _ended(agent, job.number)
        if run.overspent:
            undefined = f"it wanted more than {job.calls} live calls, which it was not allowed"
        elif job.probe.until is None:
            failed, undefined = _graded(ending, oracle, job)
            if failed is False or job.probe.purpose == "replay":
                grades = _regraded(ending, oracle, job)
    except FATAL:
        raise
    except TraceforkError as error:
        undefined = _words(error)
        if ending.error is not None and _is_leftover(error):
            undefined = _ended_with(ending.error)  # The crash is why calls are left over.
    spent = spent_by(to)
    spent.add(lost)
    return Trial(
        number=job.number,
        probe=job.probe,
        failed=failed,
        same=spent.same,
        undefined=undefined,
        calls=spent.calls,
        tokens=spent.tokens,
        usd=spent.usd,
        seconds=time.monotonic() - began,
        grades=grades,
    )


def _forked(job: Job, to: Path, lost: int) -> Scope[Forking]:
    """Return the fork of a probe, limited to the live calls left of its allowance."""
    path = Path(job.tape)
    with Tape.open(path) as tape:
        size = len(tape.exchanges)
    live = [n for n in range(size) if n not in job.probe.held]
    at = min(job.changes or live, default=size)
    return fork(
        path,
        at,
        change=_changes(job, at, size),
        writes=job.writes,
        reads=job.reads,
        rerun_tools=True,  # The blame has asked about them.
        until=job.probe.until,
        calls=None if job.calls is None else max(0, job.calls + job.lost - lost),
        tail=job.tail,
        reuse=bool(job.changes),
        to=to,
        overwrite=True,
        mask=job.mask,
        scope="process" if job.alone else "context",
    )


@dataclass(frozen=True, slots=True)
class _Ending:
    """How an agent ended: with a return value or with an exception."""

    value: object = None
    error: BaseException | None = None


def _ended(agent: Agent, number: int) -> _Ending:
    token = trial_number.set(number)
    try:
        value = finished(agent())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the agent's, SystemExit and CancelledError too
        return _Ending(error=error)
    finally:
        trial_number.reset(token)
    return _Ending(value)


def finished(value: object) -> object:
    """Return a function's result; run it to its end if the function is async."""
    return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value


async def _awaited(value: Awaitable[object]) -> object:
    return await value


def _graded(
    ending: _Ending, oracle: Oracle, job: Job, again: int = 0
) -> tuple[bool | None, str | None]:
    """Return (whether the run counts as failed, None), or (None, why it has no outcome)."""
    if ending.error is not None and not getattr(oracle, "grades_errors", False):
        if type(ending.error).__name__ == job.crash:
            return not job.credit, None
        return None, _ended_with(ending.error)
    end = ending.value if ending.error is None else ending.error
    regrade: Callable[[object, int], object] | None = getattr(oracle, "again", None)
    try:
        with outside():  # The oracle is in no session, though other threads may have forks open.
            good = finished(regrade(end, again) if again and regrade else oracle(end))
    except AssertionError:
        return not job.credit, None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - any error means no verdict
        return None, f"the oracle ended with {_words(error)}"
    if not isinstance(good, bool):
        raise _no_verdict(oracle, good)
    return good is job.credit, None


def _no_verdict(oracle: object, value: object) -> VerdictError:
    name = getattr(oracle, "__name__", repr(oracle))
    return VerdictError(
        f"tracefork: the oracle {name} returned {_shortened(repr(value))}. It must return True for "
        "a good run and False for a bad one; a failed assert also means bad."
    )


def _regraded(ending: _Ending, oracle: Oracle, job: Job) -> tuple[bool, ...]:
    """Grade the same outcome `regrades` more times, without running the agent again."""
    grades = (_graded(ending, oracle, job, again)[0] for again in range(1, job.regrades + 1))
    return tuple(grade for grade in grades if grade is not None)


def _changes(job: Job, at: int, size: int) -> dict[int | str, Intervention]:
    """Return the interventions that hold or give responses after the fork point.

    Raises:
        UsageError: a trial has no response of the unit to give.
    """
    if job.changes:
        return dict(job.changes.items())
    changes: dict[int | str, Intervention] = {n: Keep() for n in job.probe.held if at <= n < size}
    for unit, trial in job.probe.given:
        with Tape.open(Path(job.tape).with_name(job.sources[trial])) as branch:
            answers = [exchange for exchange in branch.exchanges if _place(exchange) == unit]
            if not answers:
                raise UsageError(f"tracefork: trial {trial} has no answer of exchange {unit}.")
            changes[unit] = recorded_answer(answers[-1])
    return changes


def _place(exchange: Exchange) -> int | None:
    """Return the number of the parent's exchange that an exchange of a branch stands for."""
    aside = exchange.aside
    return exchange.n if aside.place is None and not aside.answered else aside.place


def _is_leftover(error: TraceforkError) -> bool:
    return isinstance(error, DivergenceError) and error.divergence.kind == LEFTOVER


def _ended_with(error: BaseException) -> str:
    return f"the agent ended with {_words(error)}"


def _words(error: BaseException) -> str:
    return _shortened(f"{type(error).__name__}: {error}".partition("\n")[0])


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
