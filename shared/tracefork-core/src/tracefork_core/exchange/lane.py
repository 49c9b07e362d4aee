"""Lanes: one line of causally ordered exchanges, named alike in every run.

A lane is a spawn path: `main`, and `main/fetch.2` for the second `fetch` that was started from
`main`. That is a task, a thread or a job of a pool, numbered when it is started and not at its
first call. A task or thread that no hook sees start (a C event loop, another kind of pool) still
carries the context of its origin, and is named at its first call. A thread without context belongs
to the lane `threads`, which has no order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context

from tracefork_core.exchange.contract import Lane, Redraw, Session
from tracefork_core.exchange.current import (
    carried,
    entered,
    given,
    lane_of_context,
    owner,
    running_task,
    set_lane,
)
from tracefork_core.exchange.generators import frames, running_place

MAIN = "main"
"""The first lane of a session."""
UNORDERED = "threads"
"""The lane of threads that carry no context: their exchanges have no order of their own."""
UNSEEN_JOB = "job"
"""The name of the lane of a pool's job that no hook saw start."""


@contextmanager
def opened(session: Session, name: str = MAIN, *, everywhere: bool = False) -> Iterator[None]:
    """Run the code inside under a session, on its first lane.

    Raises:
        UsageError: another session with process scope is open.
    """
    with entered(session, begun(session, name), everywhere=everywhere):
        yield


def begun(session: Session, name: str) -> Lane:
    """Return a lane of a session that this code runs on from now on."""
    lane = Lane(name, session, {owner()}, name)
    _let_go(lane)
    work_here(lane)
    return lane


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
    lane = lane_of_context()
    # Called for every draw. For nearly all of them the context carries the right lane.
    if lane is not None and lane.session is session and owner() in lane.owners and not frames:
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
    here = owner()
    if origin is not None and here not in origin.owners:
        set_lane(origin.branch(name, here))


def session_of_lane() -> Session | None:
    """Return the open session whose lane this code runs on, or None."""
    if (place := running_place()) is not None:
        return place.session
    lane = _current()
    return lane.session if lane is not None and lane.session.active else None


def outlived() -> Lane | None:
    """Return the lane of this task or thread if a session started it and has ended since.

    The code that opened the session may continue after it, so its lane does not count.
    """
    lane = lane_of_context()
    if lane is None or lane.session.active or "/" not in lane.name:
        return None
    return lane


def spawned(name: str) -> Lane | None:
    """Return the lane for a task or thread that is about to be started; None outside a session."""
    lane = _mine()
    return None if lane is None or not lane.session.active else lane.child(name)


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
    """Run this thread, task or job of a pool on `lane` and under its session."""
    lane.owners.add(owner())
    _let_go(lane)
    with carried(lane), serving(lane):
        yield


@contextmanager
def serving(lane: Lane) -> Iterator[None]:
    """Let this thread or task run on `lane` though its context may carry another lane."""
    work_here(lane)
    with _giving(owner(), lane):
        yield


@contextmanager
def _giving(owner: int, lane: Lane) -> Iterator[None]:
    before = given.get(owner)
    given[owner] = lane
    try:
        yield
    finally:
        if before is None:
            del given[owner]
        else:
            given[owner] = before


def _mine() -> Lane | None:
    """Return the lane of this code: a new one if the context only carries that of its origin."""
    if (place := running_place()) is not None:
        if place.lane is not None:
            work_here(place.lane)
        return place.lane
    lane = _current()
    if lane is None:
        return None
    here = owner()
    if here in lane.owners:
        return lane
    if lane.owners:
        served = given.get(here)
        lane = served if served and served.began_at(lane) else lane.child(_running())
        set_lane(lane)
    lane.owners.add(here)
    _let_go(lane)
    work_here(lane)
    return lane


def _let_go(lane: Lane) -> None:
    """Remove the running task from the owners of a lane when it ends: another may get its id.

    Code that runs in the same context afterwards stays on the lane.
    """
    if (task := running_task()) is not None:
        ended = id(task)
        task.add_done_callback(lambda _: lane.owners.discard(ended), context=Context())


def _current() -> Lane | None:
    """Return the lane of this context, that of an open session if there is one."""
    lane = lane_of_context()
    if given and (lane is None or not lane.session.active):
        lane = given.get(owner(), lane)
        set_lane(lane)
    return lane


def _running() -> str:
    """Name the running task or job that no hook saw start."""
    task = running_task()
    return UNSEEN_JOB if task is None else name_of(task.get_coro())


def name_of(started: object) -> str:
    """Name a function, a method or a coroutine in a way that is the same in every run."""
    name = getattr(started, "__name__", None) or type(started).__name__
    return name.strip("<>")
