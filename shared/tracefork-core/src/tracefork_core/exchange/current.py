"""What runs here: the session, the step, the task and the event loop, looked up at each request.

The session is a context variable with a process-wide fallback, because raw threads and some
executors lose context variables. Two sessions without a context to tell them apart is an error,
never a guess.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Session

TYPE_CHECKING = False  # Child processes load this at their start.
if TYPE_CHECKING:
    from asyncio import Task
    from typing import Any

_here: ContextVar[Session | None] = ContextVar("tracefork_session", default=None)
_everywhere: list[Session] = []
_lock = threading.Lock()

current_step: ContextVar[str | None] = ContextVar("tracefork_step", default=None)
"""The id of the innermost step that is running here; an exchange is attributed to it."""

_outside: ContextVar[bool] = ContextVar("tracefork_outside", default=False)
_crossing: ContextVar[bool] = ContextVar("tracefork_crossing", default=False)
_rebuilding: ContextVar[bool] = ContextVar("tracefork_rebuilding", default=False)


_ran_from: list[Callable[[], tuple[str, str] | None]] = []


def ask_where(running: Callable[[], tuple[str, str] | None]) -> None:
    """Call `running` at each exchange, to learn from which checkpoint the framework runs."""
    if running not in _ran_from:
        _ran_from.append(running)


def running_checkpoint() -> tuple[str, str] | None:
    """Return the thread and the id of the checkpoint that this code runs from, if any."""
    return next((checkpoint for ask in _ran_from if (checkpoint := ask()) is not None), None)


def current_session() -> Session | None:
    """Return the session that this code runs under, or None.

    Raises:
        UsageError: two sessions are open, and nothing in this context tells which one is meant.
    """
    here = _here.get()
    if here is not None and here.active:
        return here
    if not _everywhere or _outside.get():
        return None
    open_sessions = [session for session in _everywhere if session.active]
    if len(open_sessions) > 1:
        raise UsageError(
            "tracefork: two sessions are open, and this thread has no context that tells which one "
            "it belongs to. Start the thread with contextvars.copy_context().run."
        )
    return open_sessions[0] if open_sessions else None


def lone_session() -> Session | None:
    """Return the open session if there is exactly one: all code here runs under it.

    In a forked child it is the parent's, and not active.
    """
    return _everywhere[0] if len(_everywhere) == 1 and not _outside.get() else None


@contextmanager
def entered(session: Session) -> Iterator[None]:
    """Make `session` the current one here and the fallback everywhere, with no step running yet.

    Safe to leave in another context than the one that entered (async fixtures).
    """
    with _lock:
        _everywhere.append(session)
    around, step = _here.get(), current_step.get()
    _here.set(session)
    current_step.set(None)  # Each session numbers its own steps.
    try:
        yield
    finally:
        with _lock:
            _everywhere.remove(session)
        _here.set(around)
        current_step.set(step)


@contextmanager
def carried(session: Session) -> Iterator[None]:
    """Make `session` the current one here, in a thread that it started."""
    token = _here.set(session)
    try:
        yield
    finally:
        _here.reset(token)


@contextmanager
def outside() -> Iterator[None]:
    """Keep the code inside out of the sessions that other threads have open."""
    token = _outside.set(True)
    try:
        yield
    finally:
        _outside.reset(token)


class crossing_seam:  # noqa: N801 - it is called as any context manager is; each exchange does
    """Mark connections made inside as captured by a seam; reads of the clock stay real."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _crossing.set(True)

    def __exit__(self, *error: object) -> None:
        _crossing.reset(self._token)


is_crossing_seam: Callable[[], bool] = _crossing.get
"""Return whether a seam is making a live call here. Called for every random draw."""


class rebuilding:  # noqa: N801 - as above
    """Mark code that turns an answer from a tape into a response of the calling library.

    In the recording the library did that below the seam, so the tape holds no reads of the clock.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _rebuilding.set(True)

    def __exit__(self, *error: object) -> None:
        _rebuilding.reset(self._token)


is_rebuilding: Callable[[], bool] = _rebuilding.get
"""Return whether this code builds a response from a tape."""


def loop_is_running() -> bool:
    """Return whether an event loop of asyncio runs in this thread."""
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None  # noqa: SLF001 - in `__all__`


def running_task() -> Task[Any] | None:
    """Return the task that runs here, or None."""
    events = sys.modules.get("asyncio.events")
    # Called for every draw. Without a loop, an exception would cost more than everything else.
    if events is None or (loop := events._get_running_loop()) is None:  # noqa: SLF001 - in `__all__`
        return None
    task: Task[Any] | None = sys.modules["asyncio.tasks"].current_task(loop)
    return task
