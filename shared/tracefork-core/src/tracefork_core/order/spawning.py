"""Name what the agent starts when it is started: tasks, threads and jobs of pools.

In the order of starting they are alike in every run; in the order in which they first ask for
something they are not. Wrapped while a session is open: `create_task` and `run_until_complete` of
asyncio's own loops, `Thread.start`, and `ThreadPoolExecutor.submit`. Other loops and pools are not;
what they start is named when it first asks (see `exchange.lane`). What is started below a seam
stays below it, in threads without context too.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tracefork_core.exchange.current import crossing_seam, is_crossing_seam
from tracefork_core.exchange.lane import (
    Lane,
    name_of,
    on_lane,
    serving,
    set_lane,
    shared_with,
    spawned,
    works_for,
)
from tracefork_core.order.start_order import note

_create_task = asyncio.BaseEventLoop.create_task
_run_until_complete = asyncio.BaseEventLoop.run_until_complete
_start = threading.Thread.start
_submit = ThreadPoolExecutor.submit
_lock = threading.Lock()
_users = 0


def start() -> None:
    """Name what is started from now on."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _put(_named_task, _continued, _named_thread, _named_job)


def stop() -> None:
    """Undo `start`."""
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _put(_create_task, _run_until_complete, _start, _submit)


def _put(create_task: Any, run_until_complete: Any, start_thread: Any, submit: Any) -> None:
    asyncio.BaseEventLoop.create_task = create_task  # type: ignore[method-assign]
    asyncio.BaseEventLoop.run_until_complete = run_until_complete  # type: ignore[method-assign]
    threading.Thread.start = start_thread  # type: ignore[method-assign]
    ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]


def _lane_of(started: object) -> Lane | None:
    """Return a lane for what the agent starts; what a seam's live call starts is none of ours."""
    return None if is_crossing_seam() else spawned(name_of(started))


@functools.wraps(_create_task)
def _named_task(
    self: asyncio.BaseEventLoop, coro: Any, *, context: Any = None, **more: Any
) -> asyncio.Task[Any]:
    # A context that the caller gives may be that of other tasks as well: nothing is set in it.
    if context is not None:
        return _create_task(self, coro, context=context, **more)
    if (lane := _lane_of(coro)) is None:
        return _create_task(self, coro, **more)
    context = contextvars.copy_context()
    context.run(set_lane, lane)
    task = _create_task(self, coro, context=context, **more)
    lane.owners.add(id(task))
    note(task)
    return task


@functools.wraps(_run_until_complete)
def _continued(self: asyncio.BaseEventLoop, future: Any) -> Any:
    """Let the task that this thread waits for go on in the thread's own lane."""
    if isinstance(future, asyncio.Task):
        with shared_with(future):
            return _run_until_complete(self, future)
    return _run_until_complete(self, future)


@functools.wraps(_start)
def _named_thread(self: threading.Thread) -> None:
    target = getattr(self, "_target", None) or self.run
    # The threads of a pool serve whoever submits.
    pooled = getattr(target, "__module__", None) == "concurrent.futures.thread"
    lane = None if pooled else _lane_of(self if target == self.run else target)
    if lane is not None or (is_crossing_seam() and not pooled):
        run = self.run

        def run_there() -> None:
            try:
                with crossing_seam() if lane is None else on_lane(lane):
                    run()
            finally:
                del self.run

        self.run = run_there  # type: ignore[method-assign]
    _start(self)
    if lane is not None:
        works_for(lane, self)


@functools.wraps(_submit)  # type: ignore[arg-type]
def _named_job(
    self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Future[Any]:
    job, contexts = _in_contexts(fn, args)
    lane = _lane_of(job)
    if lane is None:
        given = (_below_seam, fn) if is_crossing_seam() else (fn,)
        return _submit(self, *given, *args, **kwargs)
    for context in contexts:
        context.run(set_lane, lane)

    def run_on_lane() -> Any:
        with serving(lane) if contexts else on_lane(lane):
            return fn(*args, **kwargs)

    future = _submit(self, run_on_lane)
    for thread in tuple(self._threads):  # It may have started one.
        works_for(lane, thread)
    note(future)
    return future


def _below_seam(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with crossing_seam():
        return fn(*args, **kwargs)


def _in_contexts(fn: Any, args: tuple[Any, ...]) -> tuple[Any, list[contextvars.Context]]:
    """Return the job itself and the contexts it brings along.

    `asyncio.to_thread` brings one; LangGraph's pool one, and that of LangChain below it another.
    """
    contexts: list[contextvars.Context] = []
    while True:
        if isinstance(fn, functools.partial):
            fn, args = fn.func, (*fn.args, *args)
        context = getattr(fn, "__self__", None)
        if not (isinstance(context, contextvars.Context) and args):
            return fn, contexts
        contexts.append(context)
        fn, args = args[0], args[1:]
