"""Lanes: one line of causally ordered exchanges, named alike in every run.

A lane is a spawn path: `main`, and `main/fetch.2` for the second `fetch` that was started from
`main`. That is a task, a thread or a job of a pool, numbered when it is started and not at its
first call. A task or thread that no hook sees start (a C event loop, another kind of pool) still
carries the context of its origin, and is named at its first call. A thread without context belongs
to the lane `threads`, which has no order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field

from tracefork_core.exchange.contract import Redraw, Session
from tracefork_core.exchange.current import carried, running_task

MAIN = "main"
"""The first lane of a session."""
UNORDERED = "threads"
"""The lane of threads that carry no context: their exchanges have no order of their own."""


@dataclass(slots=True, eq=False)
class Lane:
    """A lane of one session.

    `owners` identify the tasks and threads that run on it, one at a time. `in_step` is its name
    with numbers counted from the beginning of the step around it: the same in a run that begins in
    the middle of the recorded one.
    """

    name: str
    session: Session
    owners: set[int]
    in_step: str
    _children: dict[str, int] = field(default_factory=dict)
    _before: dict[str, int] = field(default_factory=dict)

    def child(self, name: str) -> Lane:
        """Return the lane of the next `name` that is started from here."""
        number = self._children[name] = self._children.get(name, 0) + 1
        nth = number - self._before.get(name, 0)
        in_step = f"{self.in_step}/{name}.{nth}"
        return Lane(f"{self.name}/{name}.{number}", self.session, set(), in_step)

    def branch(self, name: str, owner: int) -> Lane:
        """Return the lane of a branch that `owner` runs in parallel to this one."""
        return Lane(f"{self.name}.{name}", self.session, {owner}, f"{self.in_step}.{name}")

    def began_at(self, lane: Lane) -> bool:
        """Return whether this was started from a lane, directly or through others."""
        return self.session is lane.session and self.name.startswith(f"{lane.name}/")

    def begin_step(self) -> None:
        """Number what is started from here from 1 again, in `in_step`."""
        self._before = dict(self._children)


_lane: ContextVar[Lane | None] = ContextVar("tracefork_lane", default=None)
lane_of_context: Callable[[], Lane | None] = _lane.get
"""Return the lane that this context carries, if any. Only its `owners` run on it."""
_given: dict[int, Lane] = {}
"""The lanes of awaited tasks and of threads that run a job. Their context may carry another lane:
an `asyncio.Runner` runs everything in one context, which carries none or that of an earlier
session,
and `pool.submit(context.run, work)` uses the context of the origin."""


def _owner() -> int:
    """Identify the running task, or the thread where no event loop runs."""
    task = running_task()
    return threading.get_ident() if task is None else id(task)


@contextmanager
def main_lane(session: Session, name: str = MAIN) -> Iterator[None]:
    """Run the code inside on the first lane of a session."""
    around = _lane.get()
    lane = Lane(name, session, {_owner()}, name)
    _let_go(lane)
    _lane.set(lane)
    work_here(lane)
    try:
        yield
    finally:
        _lane.set(around)


def current_lane(session: Session) -> str:
    """Return the name of the lane of `session` that this code runs on, `unordered` if on none."""
    lane = _mine()
    if lane is None or lane.session is not session:
        return session.unordered  # Each child process has its own.
    return lane.name


def lane_names(session: Session) -> tuple[str, str]:
    """Return the name of the lane of `session`, and its name counted within the step."""
    lane = lane_here(session)
    if lane is None:
        name = current_lane(session)
        return name, name
    return lane.name, lane.in_step


def drawing_lane(session: Session) -> str:
    """Return the name under which this lane draws: with a salt where a fork draws new values."""
    lane = _lane.get()
    # Called for every draw. For nearly all of them the context carries the right lane.
    if lane is not None and lane.session is session and _owner() in lane.owners:
        name = lane.name
    else:
        name = current_lane(session)
    if not session.redraws:
        return name
    redraw = _redraw(session, name)
    return name if redraw is None else f"{name}~{redraw.salt}"


def draws_new_values(session: Session) -> bool:
    """Return whether a fork draws values on this lane that no tape holds."""
    redraw = _redraw(session, current_lane(session))
    return redraw is not None and not redraw.is_recorded


def _redraw(session: Session, lane: str) -> Redraw | None:
    """Return the latest redraw whose fork point this lane is past."""
    for redraw in reversed(session.redraws):
        if not redraw.since.isdisjoint(_line(lane)):
            return redraw
    return None


def _line(name: str) -> Iterator[str]:
    """Yield the names of a lane and of those it was started from."""
    while name:
        yield name
        name = name.rpartition("/")[0]


def lane_here(session: Session) -> Lane | None:
    """Return the lane of `session` that this code runs on; None if it has no order."""
    lane = _mine()
    return None if lane is None or lane.session is not session else lane


def branch_lane(origin: Lane | None, name: str) -> None:
    """Name the lane of this task or job after its branch, if it runs in parallel to `origin`."""
    owner = _owner()
    if origin is not None and owner not in origin.owners:
        _lane.set(origin.branch(name, owner))


def session_of_lane() -> Session | None:
    """Return the open session whose lane this code runs on, or None."""
    lane = _current()
    return lane.session if lane is not None and lane.session.active else None


def outlived() -> Lane | None:
    """Return the lane of this task or thread if a session started it and has ended since.

    The code that opened the session may continue after it, so its lane does not count.
    """
    lane = _lane.get()
    if lane is None or lane.session.active or "/" not in lane.name:
        return None
    return lane


def spawned(name: str) -> Lane | None:
    """Return the lane for a task or thread that is about to be started; None outside a session."""
    lane = _mine()
    return None if lane is None or not lane.session.active else lane.child(name)


def set_lane(lane: Lane | None) -> None:
    """Let this context carry `lane`. The first task or thread that uses it there owns it."""
    _lane.set(lane)


@contextmanager
def shared_with(task: object) -> Iterator[None]:
    """Let a task run on the lane of this code while this code waits for it."""
    lane = _mine()
    if lane is None:
        yield
        return
    lane.owners.add(id(task))
    try:
        with _giving(id(task), lane):
            yield
    finally:
        lane.owners.discard(id(task))


def work_here(lane: Lane) -> None:
    """Note that this thread runs code of `lane`."""
    lane.session.threads.add(threading.get_native_id())


def works_for(lane: Lane, thread: threading.Thread) -> None:
    """Note that a thread was started for `lane`, before it runs: it is not at rest yet."""
    if thread.native_id is not None:
        lane.session.threads.add(thread.native_id)


@contextmanager
def program_of_lane(program: int) -> Iterator[None]:
    """Note that this code waits for a subprocess, which computes for its lane meanwhile."""
    lane = _mine()
    if lane is None:
        yield
        return
    threads = lane.session.threads
    threads.add(program)
    try:
        yield
    finally:
        threads.discard(program)


@contextmanager
def on_lane(lane: Lane) -> Iterator[None]:
    """Run a thread, or a job of a pool, on `lane` and under its session."""
    lane.owners.add(threading.get_ident())
    token = _lane.set(lane)
    try:
        with carried(lane.session), serving(lane):
            yield
    finally:
        _lane.reset(token)


@contextmanager
def serving(lane: Lane) -> Iterator[None]:
    """Let this thread run on `lane` though its context may carry another lane."""
    work_here(lane)
    with _giving(threading.get_ident(), lane):
        yield


@contextmanager
def _giving(owner: int, lane: Lane) -> Iterator[None]:
    before = _given.get(owner)
    _given[owner] = lane
    try:
        yield
    finally:
        if before is None:
            del _given[owner]
        else:
            _given[owner] = before


def _mine() -> Lane | None:
    """Return the lane of this code: a new one if the context only carries that of its origin."""
    lane = _current()
    if lane is None:
        return None
    owner = _owner()
    if owner in lane.owners:
        return lane
    if lane.owners:
        given = _given.get(owner)
        lane = given if given and given.began_at(lane) else lane.child(_running())
        _lane.set(lane)
    lane.owners.add(owner)
    _let_go(lane)
    work_here(lane)
    return lane


def _let_go(lane: Lane) -> None:
    """Remove the running task from the owners of a lane when it ends: another may get its id.

    Code that runs in the same context afterwards stays on the lane.
    """
    if (task := running_task()) is not None:
        owner = id(task)
        task.add_done_callback(lambda _: lane.owners.discard(owner), context=Context())


def _current() -> Lane | None:
    """Return the lane of this context, that of an open session if there is one."""
    lane = _lane.get()
    if _given and (lane is None or not lane.session.active):
        lane = _given.get(_owner(), lane)
        _lane.set(lane)
    return lane


def _running() -> str:
    """Name the running task or job that no hook saw start."""
    task = running_task()
    return "job" if task is None else name_of(task.get_coro())


def name_of(started: object) -> str:
    """Name a function, a method or a coroutine in a way that is the same in every run."""
    name = getattr(started, "__name__", None) or type(started).__name__
    return name.strip("<>")
