"""What runs here: the session, the step, the task and the event loop, looked up at each request.

A session covers what is started from its block, and nothing else. A context variable tells: tasks
and callbacks inherit it, and the hooks of `order` carry it into threads and jobs of pools, which do
not. Other work of the process has no session. A session with process scope, that of the command
line, covers all the other work too. Steps of generators are found on the stack (see `generators`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar

from tracefork_core.errors import UsageError
from tracefork_core.exchange import generators
from tracefork_core.exchange.contract import Lane, Session
from tracefork_core.exchange.generators import Place

TYPE_CHECKING = False  # Child processes load this at their start.
if TYPE_CHECKING:
    from asyncio import Task
    from types import FrameType
    from typing import Any

_here: ContextVar[Session | None] = ContextVar("tracefork_session", default=None)
_open: list[Session] = []
_process: list[Session] = []
"""The session with process scope, if one is open."""
_blocks: dict[int, FrameType] = {}
"""The frame that opened each session, by the session's id."""
_left_alone = 0
"""How many requests of other work were made while any session was open."""
_lock = threading.Lock()

given: dict[int, Lane] = {}
"""The lanes of awaited tasks and of threads that run a job. Their context may carry another lane:
an `asyncio.Runner` runs everything in one context, which carries none or that of an earlier
session, and `pool.submit(context.run, work)` uses the context of the origin."""

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
    """Return the session that this code runs under, or None: it is other work of the process."""
    if generators.frames and (place := generators.running_place()) is not None:
        return place.session
    here = _here.get()
    if here is not None and here.active:
        return here
    if given and (lane := given.get(owner())) is not None and lane.session.active:
        return lane.session
    if _process and not _outside.get() and (session := _process[0]).active:
        return session
    return None


def session_of_request() -> Session | None:
    """As `current_session`, for a seam that is about to make a request."""
    global _left_alone
    session = current_session()
    if session is None:
        if _open and not is_crossing_seam():
            with _lock:
                _left_alone += 1
    elif (block := _blocks.get(id(session))) is not None:
        lane = given.get(owner()) or lane_of_context()
        mine = lane if lane is not None and lane.session is session else None
        generators.keep_running(Place(session, mine), block)
    return session


def is_carried_by(context: Context, session: Session) -> bool:
    """Return whether code that runs in a context belongs to a session."""
    return context.get(_here) is session


def requests_left_alone() -> int:
    """Return how many requests of other work were made so far while any session was open."""
    return _left_alone


def check_process_is_free() -> None:
    """Raise if a session with process scope is open.

    Raises:
        UsageError: one is.
    """
    if _process and _process[0].active:
        raise UsageError(
            'tracefork: a session with scope="process" is open already, and two cannot share the '
            'rest of the process. Leave out scope="process".'
        )


@contextmanager
def entered(session: Session, lane: Lane, *, everywhere: bool = False) -> Iterator[None]:
    """Make a session the current one, on its first lane, with no step running yet.

    Safe to leave in another context than the one that entered (async fixtures).

    Args:
        session: the session.
        lane: the lane of the code that opens it.
        everywhere: whether it has process scope, that is, covers all other work as well.

    Raises:
        UsageError: another session with process scope is open.
    """
    block = generators.opening_frame()
    with _lock:
        if everywhere:
            check_process_is_free()
        _open.append(session)
        if everywhere:
            _process[:] = [session]
        elif block is not None:
            _blocks[id(session)] = block
    # Its body is the block, not the code that iterates over it: no context variable is set.
    apart = not everywhere and generators.is_iterated(block)
    if block is not None and (apart or (generators.frames and not everywhere)):
        generators.keep(block, Place(session, lane))
    around, lane_around, step = _here.get(), _lane.get(), current_step.get()
    if not apart:
        _here.set(session)
        _lane.set(lane)
    current_step.set(None)  # Each session numbers its own steps.
    try:
        yield
    finally:
        with _lock:
            _open.remove(session)
            _blocks.pop(id(session), None)
            if everywhere:
                _process.remove(session)
        generators.forget(session)
        if not apart:
            _here.set(around)
            _lane.set(lane_around)
        current_step.set(step)


@contextmanager
def carried(lane: Lane) -> Iterator[None]:
    """Run a thread, or a job of a pool, on a lane and under its session."""
    token, session = _lane.set(lane), _here.set(lane.session)
    try:
        yield
    finally:
        _here.reset(session)
        _lane.reset(token)


@contextmanager
def outside() -> Iterator[None]:
    """Keep the code inside out of a session with process scope."""
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


_lane: ContextVar[Lane | None] = ContextVar("tracefork_lane", default=None)
lane_of_context: Callable[[], Lane | None] = _lane.get
"""Return the lane that this context carries, if any. Only its `owners` run on it."""


def set_lane(lane: Lane | None) -> None:
    """Let this context carry `lane` and its session. The first task or thread there owns it."""
    _lane.set(lane)
    if lane is not None:
        _here.set(lane.session)


def owner() -> int:
    """Identify the running task, or the thread where no event loop runs."""
    task = running_task()
    return threading.get_ident() if task is None else id(task)


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
