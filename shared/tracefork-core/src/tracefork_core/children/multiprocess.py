"""Processes and pools of the standard library: their lanes are named where they are asked for.

A process carries its invitations with it, whatever starts it: spawn, fork or a fork server. A job
of a `ProcessPoolExecutor` carries its lane: which worker does it is up to chance. The workers of a
`multiprocessing.Pool` have no lanes, and their exchanges no order of their own. What is started
below a seam carries that instead: it is part of an exchange.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from tracefork_core.children import forks
from tracefork_core.children.invitation import Invitation
from tracefork_core.egress.guard import watches_here
from tracefork_core.exchange.caller import caller
from tracefork_core.exchange.current import crossing_seam, current_step, is_crossing_seam
from tracefork_core.exchange.lane import Lane, name_of, on_lane, set_lane
from tracefork_core.patching.instrument import Instrument, Undo

_CARRIED = "_tracefork_invitations"
_BELOW = "_tracefork_below_seam"
_NAME = "workers of a process pool from before"
_RUNS = "_tracefork_runs"


def instrument_process(library: ModuleType) -> Undo:
    """Let processes of `multiprocessing.process` carry their invitations."""
    process = library.BaseProcess
    start, bootstrap = process.start, process._bootstrap  # noqa: SLF001 - where the child begins

    @functools.wraps(start)
    def invited_start(self: Any) -> None:
        if is_crossing_seam():
            return _start_below(self)
        target = getattr(self, "_target", None)
        invitations = [descent.invite(_name(self, target)) for descent in forks.descents()]
        if not invitations:
            return start(self)  # type: ignore[no-any-return]
        _renew_fork_server(self)
        setattr(self, _CARRIED, [tuple(invitation) for invitation in invitations])
        try:
            start(self)
            note_start(self)
        finally:
            delattr(self, _CARRIED)

    def _start_below(self: Any) -> None:
        for descent in forks.descents():
            descent.open()  # It is armed when it joins.
            _renew_fork_server(self)
        setattr(self, _BELOW, True)
        try:
            start(self)
        finally:
            delattr(self, _BELOW)

    @functools.wraps(bootstrap)
    def joined_bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.__dict__.pop(_BELOW, False):
            with crossing_seam():
                return bootstrap(self, *args, **kwargs)
        for given in self.__dict__.pop(_CARRIED, ()):
            _take(Invitation(*given), ordered=not _is_pooled(self))
        try:
            return bootstrap(self, *args, **kwargs)
        finally:
            forks.leave()  # `os._exit` of a fork, or `atexit`, tells what is drawn after this.

    process.start, process._bootstrap = invited_start, joined_bootstrap  # noqa: SLF001

    def undo() -> None:
        process.start, process._bootstrap = start, bootstrap  # noqa: SLF001
        _let_fork_server_go()

    return undo


def instrument_executor(library: ModuleType) -> Undo:
    """Let jobs of `concurrent.futures.process` carry their lanes."""
    executor = library.ProcessPoolExecutor
    submit = executor.submit

    @functools.wraps(submit)
    def submit_on_lane(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        if is_crossing_seam():
            return submit(self, BelowSeam(fn), *args, **kwargs)
        invitations = [descent.invite(_job(fn)) for descent in forks.descents()]
        if invitations:
            tell_of_older(self, tuple((self._processes or {}).values()))
            fn = OnLane(fn, [tuple(invitation) for invitation in invitations])
        return submit(self, fn, *args, **kwargs)

    executor.submit = submit_on_lane

    def undo() -> None:
        executor.submit = submit

    return undo


def instrument_pool(library: ModuleType) -> Undo:
    """Name the workers of a `multiprocessing.pool` that are older than the session."""
    pool = library.Pool
    check = pool._check_running  # noqa: SLF001 - whoever gives it work comes by here

    @functools.wraps(check)
    def check_workers(self: Any) -> None:
        check(self)
        if not is_crossing_seam() and not isinstance(self, library.ThreadPool):
            tell_of_older(self, tuple(self._pool))

    pool._check_running = check_workers  # noqa: SLF001

    def undo() -> None:
        pool._check_running = check  # noqa: SLF001

    return undo


class BelowSeam:
    """A job that is part of an exchange, in whatever process."""

    def __init__(self, job: Callable[..., Any]) -> None:
        self._job = job

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with crossing_seam():
            return self._job(*args, **kwargs)


class OnLane:
    """A job that runs on its own lane, in whatever process."""

    def __init__(self, job: Callable[..., Any], invitations: list[tuple[Any, ...]]) -> None:
        self._job = job
        self._invitations = invitations

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        known = {arrival.descent.home.token: arrival for arrival in forks.arrivals}
        for given in self._invitations:
            invitation = Invitation(*given)
            arrival = known.get(invitation.token)
            if arrival is None:
                continue
            current_step.set(invitation.step)
            lane = Lane(invitation.lane, arrival.member, set(), invitation.lane)
            try:
                with on_lane(lane):
                    return self._job(*args, **kwargs)
            finally:
                arrival.member.flush()
        return self._job(*args, **kwargs)


def _take(invitation: Invitation, *, ordered: bool) -> None:
    """Take the lane that was chosen for this process."""
    for arrival in forks.arrivals:
        if arrival.descent.home.token == invitation.token:
            arrival.move(invitation)
            if not ordered:
                set_lane(None)


def _name(process: Any, target: object) -> str:
    return type(process).__name__ if target is None else name_of(target)


def _job(fn: Any) -> str:
    """Name a job; `map` hands over the function inside of one of its own."""
    while isinstance(fn, functools.partial):
        fn = fn.args[0] if fn.args and callable(fn.args[0]) else fn.func
    return name_of(fn)


def _is_pooled(process: Any) -> bool:
    target = getattr(process, "_target", None)
    return getattr(target, "__module__", None) == "multiprocessing.pool"


def _renew_fork_server(process: Any) -> None:
    """Let a fork server go that is older than the door: its children could not join."""
    multiprocessing = sys.modules["multiprocessing"]
    method = getattr(process, "_start_method", None) or multiprocessing.get_start_method()
    if method != "forkserver":
        return
    server = import_module("multiprocessing.forkserver")._forkserver  # noqa: SLF001
    address = forks.descents()[0].home.address
    if getattr(server, _CARRIED, None) != address:
        _let_go(server)
        setattr(server, _CARRIED, address)


def _let_fork_server_go() -> None:
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    if hasattr(server, _CARRIED):
        _let_go(server)
        delattr(server, _CARRIED)


def _let_go(server: Any) -> None:
    """Let the next process start a fork server anew. This one ends when its children have."""
    alive = server._forkserver_alive_fd  # noqa: SLF001 - its `_stop` would wait for them
    if alive is not None:
        os.close(alive)
    for name in ("_forkserver_address", "_forkserver_alive_fd", "_forkserver_pid"):
        setattr(server, name, None)


def note_start(process: object) -> None:
    """Remember under which sessions a process was started."""
    setattr(process, _RUNS, _open_runs())


def tell_of_older(pool: object, workers: Iterable[object]) -> None:
    """Say, once for each session, that a pool which is given work has workers from before.

    Raises:
        EgressError: programs that nobody watches were ruled out.
    """
    told = vars(pool).setdefault(_RUNS, set[str]())
    runs = _open_runs() - told
    if not runs or all(runs <= getattr(worker, _RUNS, frozenset()) for worker in workers):
        return
    told |= runs
    for watch in watches_here():
        watch.starting(_NAME, guarded=False)
    warnings.warn(
        f"tracefork: {caller() or 'a library'} gives work to a process pool whose workers were "
        "started before the block: what they ask is not on the tape, and live at replay. Make the "
        "pool inside the block.",
        RuntimeWarning,
        stacklevel=1,
    )


def _open_runs() -> frozenset[str]:
    here = forks.descents()
    for descent in here:
        descent.open()  # Behind the door is the name of the run.
    return frozenset(descent.home.token for descent in here)


PROCESSES = (
    Instrument("multiprocessing.process", instrument_process),
    Instrument("concurrent.futures.process", instrument_executor),
    Instrument("multiprocessing.pool", instrument_pool),
)
