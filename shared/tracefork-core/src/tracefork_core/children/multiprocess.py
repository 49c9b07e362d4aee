"""Give the processes and process pools of the standard library their lanes.

A `multiprocessing` process carries its invitations with it, for spawn, fork and fork server alike.
A job of a `ProcessPoolExecutor` carries its lane, because any worker may run it. The workers of a
`multiprocessing.Pool` have no lanes, and their exchanges no order. A process or job that a captured
call starts is marked as below the seam: it is part of that exchange.

Workers that started before the session cannot join it. A warning and the receipt name them.
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
from tracefork_core.exchange.contract import Lane
from tracefork_core.exchange.current import crossing_seam, current_step, is_crossing_seam, set_lane
from tracefork_core.exchange.lane import name_of, on_lane
from tracefork_core.patching.instrument import Instrument, Undo
from tracefork_core.patching.patch import Patches

_CARRIED = "_tracefork_invitations"
_BELOW = "_tracefork_below_seam"
_NAME = "process pool workers started before the block"
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
            descent.open()  # The child is instrumented when it joins.
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
            forks.leave()  # Later draws are reported by `os._exit` or `atexit`.

    patches = Patches()
    patches.at_undo(_drop_own_fork_server)
    patches.replace(process, "start", invited_start)
    patches.replace(process, "_bootstrap", joined_bootstrap)
    return patches.undo


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
            report_older_workers(self, tuple((self._processes or {}).values()))
            fn = OnLane(fn, [tuple(invitation) for invitation in invitations])
        return submit(self, fn, *args, **kwargs)

    patches = Patches()
    patches.replace(executor, "submit", submit_on_lane)
    return patches.undo


def instrument_pool(library: ModuleType) -> Undo:
    """Report workers of a `multiprocessing.pool` that started before the session."""
    pool = library.Pool
    check = pool._check_running  # noqa: SLF001 - every way to submit work calls it

    @functools.wraps(check)
    def check_workers(self: Any) -> None:
        check(self)
        if not is_crossing_seam() and not isinstance(self, library.ThreadPool):
            report_older_workers(self, tuple(self._pool))

    patches = Patches()
    patches.replace(pool, "_check_running", check_workers)
    return patches.undo


class BelowSeam:
    """A job that is part of an exchange, in whichever process it runs."""

    def __init__(self, job: Callable[..., Any]) -> None:
        self._job = job

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with crossing_seam():
            return self._job(*args, **kwargs)


class OnLane:
    """A job that runs on its own lane, in whichever process it runs."""

    def __init__(self, job: Callable[..., Any], invitations: list[tuple[Any, ...]]) -> None:
        self._job = job
        self._invitations = invitations

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        known = {joined.descent.home.token: joined for joined in forks.joined_processes}
        for given in self._invitations:
            invitation = Invitation(*given)
            joined = known.get(invitation.token)
            if joined is None:
                continue
            current_step.set(invitation.step)
            lane = Lane(invitation.lane, joined.member, set(), invitation.lane)
            try:
                with on_lane(lane):
                    return self._job(*args, **kwargs)
            finally:
                joined.member.flush()
        return self._job(*args, **kwargs)


def _take(invitation: Invitation, *, ordered: bool) -> None:
    """Run this process on the lane of an invitation."""
    for joined in forks.joined_processes:
        if joined.descent.home.token == invitation.token:
            joined.move(invitation)
            if not ordered:
                set_lane(None)


def _name(process: Any, target: object) -> str:
    return type(process).__name__ if target is None else name_of(target)


def _job(fn: Any) -> str:
    """Return the name of a job; `map` wraps the user's function in one of its own."""
    while isinstance(fn, functools.partial):
        fn = fn.args[0] if fn.args and callable(fn.args[0]) else fn.func
    return name_of(fn)


def _is_pooled(process: Any) -> bool:
    target = getattr(process, "_target", None)
    return getattr(target, "__module__", None) == "multiprocessing.pool"


def _renew_fork_server(process: Any) -> None:
    """Replace a fork server that started before the door: its children could not join."""
    multiprocessing = sys.modules["multiprocessing"]
    method = getattr(process, "_start_method", None) or multiprocessing.get_start_method()
    if method != "forkserver":
        return
    server = import_module("multiprocessing.forkserver")._forkserver  # noqa: SLF001
    address = forks.descents()[0].home.address
    if getattr(server, _CARRIED, None) != address:
        _drop_fork_server(server)
        setattr(server, _CARRIED, address)


def _drop_own_fork_server() -> None:
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    if hasattr(server, _CARRIED):
        _drop_fork_server(server)
        delattr(server, _CARRIED)


def _drop_fork_server(server: Any) -> None:
    """Make the next process start a new fork server; the old one ends with its children."""
    alive = server._forkserver_alive_fd  # noqa: SLF001 - its `_stop` would wait for them
    if alive is not None:
        os.close(alive)
    for name in ("_forkserver_address", "_forkserver_alive_fd", "_forkserver_pid"):
        setattr(server, name, None)


def note_start(process: object) -> None:
    """Remember the sessions under which a process was started."""
    setattr(process, _RUNS, _open_runs())


def report_older_workers(pool: object, workers: Iterable[object]) -> None:
    """Warn, once for each session, that a pool with older workers gets work.

    Raises:
        EgressError: the session allows no other programs.
    """
    reported = vars(pool).setdefault(_RUNS, set[str]())
    runs = _open_runs() - reported
    if not runs or all(runs <= getattr(worker, _RUNS, frozenset()) for worker in workers):
        return
    reported |= runs
    for watch in watches_here():
        watch.starting(_NAME, guarded=False)
    warnings.warn(
        f"tracefork: {caller() or 'a library'} gives work to a process pool whose workers were "
        "started before the block. Their requests are not on the tape, and live at replay. "
        "Create the pool inside the block.",
        RuntimeWarning,
        stacklevel=1,
    )


def _open_runs() -> frozenset[str]:
    descents = forks.descents()
    for descent in descents:
        descent.open()  # Only an open door has a token, which identifies the run.
    return frozenset(descent.home.token for descent in descents)


PROCESSES = (
    Instrument("multiprocessing.process", instrument_process),
    Instrument("concurrent.futures.process", instrument_executor),
    Instrument("multiprocessing.pool", instrument_pool),
)
