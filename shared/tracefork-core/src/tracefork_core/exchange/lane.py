"""Lanes: one line of causally ordered exchanges, named alike in every run.

A lane is a spawn path: `main`, and `main/2` for the second task or executor job, in order of first
use, that was started from `main`. The name is inherited through the context that tasks and
context-aware executors copy. A thread without context belongs to the lane `threads`, which promises
no order.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

UNORDERED = "threads"
"""The lane of threads that carry no context: their exchanges have no order of their own."""


@dataclass(slots=True, eq=False)
class Lane:
    """A lane of one session. `owner` is the task or thread that runs on it."""

    name: str
    owner: int
    session: object
    children: itertools.count[int] = field(default_factory=lambda: itertools.count(1))


_lane: ContextVar[Lane | None] = ContextVar("tracefork_lane", default=None)


def _owner() -> int:
    """Identify the running task, or the thread where no event loop runs."""
    # Every request asks: where no loop runs, an exception would cost more than all the rest.
    loop = asyncio._get_running_loop()  # noqa: SLF001 - one of its `__all__`
    task = asyncio.current_task(loop) if loop is not None else None
    return id(task) if task is not None else threading.get_ident()


@contextmanager
def main_lane(session: object) -> Iterator[None]:
    """Start the lane `main` of a session here, and go back to the lane around it at the end."""
    around = _lane.get()
    _lane.set(Lane("main", _owner(), session))
    try:
        yield
    finally:
        _lane.set(around)


def current_lane(session: object) -> str:
    """Return the name of the lane of `session` that this code runs on."""
    lane = _lane.get()
    if lane is None or lane.session is not session:
        return UNORDERED
    owner = _owner()
    if lane.owner != owner:
        # Inherited by copy: a task or a job that was started from that lane.
        lane = Lane(f"{lane.name}/{next(lane.children)}", owner, session)
        _lane.set(lane)
    return lane.name


def lane_here(session: object) -> Lane | None:
    """Return the lane of `session` that this code runs on; None where it has no order."""
    return None if current_lane(session) == UNORDERED else _lane.get()


def branch_lane(origin: Lane | None, name: str) -> None:
    """Name the lane of this task or job after the branch it runs, where it runs beside `origin`."""
    owner = _owner()
    if origin is not None and origin.owner != owner:
        _lane.set(Lane(f"{origin.name}.{name}", owner, origin.session))
