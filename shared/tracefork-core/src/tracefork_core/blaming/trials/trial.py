"""Carry out one probe: fork the run, and grade what comes of it. Runs in any process."""

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
from tracefork_core.run.fork import Forking, fork
from tracefork_core.run.scope import Scope
from tracefork_core.session.forking import Writes
from tracefork_core.session.interventions import Edit, Intervention, Keep
from tracefork_core.session.prepared_exchange import recorded_answer
from tracefork_core.tape import Exchange, Tape

Agent: TypeAlias = Callable[[], object]
"""What is run again: a function, async ones too."""
Oracle: TypeAlias = Callable[[object], object]
"""Says whether a run was good, of what the agent returned, as an assertion does.

One with a true attribute `grades_errors` is given what the agent raised, too. One with a method
`again(outcome, n)` is asked by it for the n-th grade of the same outcome, from 1.
"""


@runtime_checkable
class ModelOracle(Protocol):
    """An oracle that asks a model, and keeps what it asked where a blame tells it to."""

    def placed(self, folder: Path) -> Oracle:
        """Return the oracle of a blame in that folder."""

    def capped(self, calls: int) -> Oracle:
        """Return the oracle that makes no call once there were so many, in whatever process."""

    def spent(self, known: dict[str, list[Spent]]) -> Spending:
        """Return what its grades spent so far; `known` is what it noted at the last call."""


trial_number: ContextVar[int | None] = ContextVar("tracefork_trial", default=None)
"""The number of the trial that runs here: what an agent seeds a model of its own with.

Random values and ids in a fork are as recorded, so that nothing but the change makes a difference.
A model that is seeded with them would say the same in every fork.
"""

_LONGEST = 300


class VerdictError(UsageError):
    """The oracle returned something other than True or False."""


FATAL = (UnwritableError, VerdictError)
"""Errors that end a blame: the fork is not at fault, and every other fork would meet them, too."""


class Job(msgspec.Struct, frozen=True):
    """A probe, and all that is needed to carry it out wherever it is sent.

    Attributes:
        tape: the run; its branches go beside it.
        branch: the name of this one.
        sources: for each trial that a response is given from, its branch.
        crash: the exception that the recorded run ended with: ending so again is a failure, and
            ending with any other has no outcome.
        writes: as for `fork`.
        calls: how many live calls there may be, besides those `lost` to attempts before it.
        mask: as for `fork`.
        credit: whether it is the good end that is looked into: a good run counts as failed.
        regrades: how often the same end is graded again, where the run is held whole or is good.
        grading: how many calls the oracle may have made when this is done, those before counted.
        tail: as for `fork`.
    """

    number: int
    probe: Probe
    tape: str
    branch: str
    sources: Mapping[int, str]
    crash: str | None = None
    writes: Writes = "refuse"
    calls: int | None = None
    lost: int = 0
    mask: tuple[str, ...] = ()
    credit: bool = False
    regrades: int = 0
    grading: int | None = None
    tail: Edit | None = None


def check_functions(agent: object, oracle: object) -> None:
    """Refuse what could be called, if at all, without being run.

    Raises:
        UsageError: one of them is no function, or a generator, or the oracle returns nothing.
    """
    for what, given in (("agent", agent), ("oracle", oracle)):
        if not callable(given):
            words = f"tracefork: the {what} of a blame is a function, not {given!r}."
            hint = " Only the command line reads words." if isinstance(given, str) else ""
            raise UsageError(f"{words}{hint}")
        if inspect.isgeneratorfunction(given) or inspect.isasyncgenfunction(given):
            name = getattr(given, "__name__", given)
            raise UsageError(
                f"tracefork: the {what} {name} is a generator: to call it runs nothing. Name a "
                "function that goes through it."
            )


def carry_out(job: Job, agent: Agent, oracle: Oracle) -> Trial:
    """Fork the run as the probe says, and return what ending of it.

    What an earlier attempt spent, whose process died, counts as taken by this one.

    Raises:
        UnwritableError: the branch cannot be written.
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
        with _forked(job, to, lost.calls) as run:
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
            undefined = _ended_with(ending.error)  # So it did not come to the rest.
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
    """Return the fork that a probe asks for, with the live calls that are left of its allowance."""
    path = Path(job.tape)
    with Tape.open(path) as tape:
        size = len(tape.exchanges)
    live = [n for n in range(size) if n not in job.probe.held]
    at = min(live, default=size)
    return fork(
        path,
        at,
        change=_changes(job, at, size),
        writes=job.writes,
        until=job.probe.until,
        calls=None if job.calls is None else max(0, job.calls + job.lost - lost),
        tail=job.tail,
        to=to,
        overwrite=True,
        mask=job.mask,
    )


@dataclass(frozen=True, slots=True)
class _Ending:
    """How an agent ended: with a value, or with an error."""

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
    """Return what a function ending to, of async ones too."""
    return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value


async def _awaited(value: Awaitable[object]) -> object:
    return await value


def _graded(
    ending: _Ending, oracle: Oracle, job: Job, again: int = 0
) -> tuple[bool | None, str | None]:
    """Return whether a run counts as failed, or why nobody can say."""
    if ending.error is not None and not getattr(oracle, "grades_errors", False):
        if type(ending.error).__name__ == job.crash:
            return not job.credit, None
        return None, _ended_with(ending.error)
    end = ending.value if ending.error is None else ending.error
    regrade: Callable[[object, int], object] | None = getattr(oracle, "again", None)
    try:
        with outside():  # Other forks may be open in other threads.
            good = finished(regrade(end, again) if again and regrade else oracle(end))
    except AssertionError:
        return not job.credit, None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, there is no verdict
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
    """Return the grades of the same end, given again without a call of the agent's."""
    grades = (_graded(ending, oracle, job, again)[0] for again in range(1, job.regrades + 1))
    return tuple(grade for grade in grades if grade is not None)


def _changes(job: Job, at: int, size: int) -> dict[int | str, Intervention]:
    """Return what is held or given after the fork point.

    Raises:
        UsageError: a trial has no answer to be given.
    """
    changes: dict[int | str, Intervention] = {n: Keep() for n in job.probe.held if at <= n < size}
    for unit, trial in job.probe.given:
        with Tape.open(Path(job.tape).with_name(job.sources[trial])) as branch:
            found = [one for one in branch.exchanges if _place(one) == unit]
            if not found:
                raise UsageError(f"tracefork: trial {trial} asked nothing in the place of {unit}.")
            changes[unit] = recorded_answer(found[-1])
    return changes


def _place(exchange: Exchange) -> int | None:
    """Return the unit that an exchange of a branch is; those of the parent are themselves."""
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
