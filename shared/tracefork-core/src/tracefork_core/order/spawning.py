"""Name the tasks, threads and pool jobs of an agent as it starts them.

They start in the same order in every run, but do not make their first request in the same order.
While a session is open, these are wrapped: `create_task` and `run_until_complete` of asyncio's own
loops, `Thread.start`, `ThreadPoolExecutor.submit`, and `add_done_callback` of its futures. Other
loops and pools are not; the tasks and threads that they start are named at their first request (see
`exchange.lane`). A thread that is started below a seam stays below it, even if it does not inherit
the context.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tracefork_core.exchange.contract import Lane
from tracefork_core.exchange.current import crossing_seam, is_crossing_seam, set_lane
from tracefork_core.exchange.lane import (
    name_of,
    on_lane,
    serving,
    shared_with,
    spawned,
    works_for,
)
from tracefork_core.order.start_order import note
from tracefork_core.patching.patch import Patches, Shared

_POOLS = ("concurrent.futures.thread", "anyio._backends._asyncio")
"""Modules whose threads run jobs, which have lanes of their own."""
_create_task = asyncio.BaseEventLoop.create_task
_run_until_complete = asyncio.BaseEventLoop.run_until_complete
_start = threading.Thread.start
_submit = ThreadPoolExecutor.submit
_add_done_callback = Future.add_done_callback


def _put_in(patches: Patches) -> None:
    patches.replace(asyncio.BaseEventLoop, "create_task", _named_task)
    patches.replace(asyncio.BaseEventLoop, "run_until_complete", _continued)
    patches.replace(threading.Thread, "start", _named_thread)
    patches.replace(ThreadPoolExecutor, "submit", _named_job)
    patches.replace(Future, "add_done_callback", _named_callback)


_patches = Shared(_put_in)


def start() -> None:
    """Name what is started from now on."""
    _patches.on()


def stop() -> None:
    """Undo `start`."""
    _patches.off()


def lane_for(started: object) -> Lane | None:
    """Return a lane for a task or thread of the agent, None for one that a live call starts."""
    return None if is_crossing_seam() else spawned(name_of(started))


@functools.wraps(_create_task)
def _named_task(
    self: asyncio.BaseEventLoop, coro: Any, *, context: Any = None, **more: Any
) -> asyncio.Task[Any]:
    # Other tasks may share a context that the caller passes, so no lane is set in it.
    if context is not None:
        return _create_task(self, coro, context=context, **more)
    if (lane := lane_for(coro)) is None:
        return _create_task(self, coro, **more)
    context = contextvars.copy_context()
    context.run(set_lane, lane)
    task = _create_task(self, coro, context=context, **more)
    lane.owners.add(id(task))
    note(task)
    return task


@functools.wraps(_run_until_complete)
def _continued(self: asyncio.BaseEventLoop, future: Any) -> Any:
    """Run the task that this thread waits for in the thread's own lane."""
    if isinstance(future, asyncio.Task):
        with shared_with(future):
            return _run_until_complete(self, future)
    return _run_until_complete(self, future)


@functools.wraps(_start)
def _named_thread(self: threading.Thread) -> None:
    target = getattr(self, "_target", None) or self.run
    # The threads of a pool take the lane of each job.
    pooled = getattr(target, "__module__", None) in _POOLS
    lane = None if pooled else lane_for(self if target == self.run else target)
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
    lane = lane_for(job)
    if lane is None:
        given = (_below_seam, fn) if is_crossing_seam() else (fn,)
        return _submit(self, *given, *args, **kwargs)
    for context in contexts:
        context.run(set_lane, lane)

    def run_on_lane() -> Any:
        with serving(lane) if contexts else on_lane(lane):
            return fn(*args, **kwargs)

    future = _submit(self, run_on_lane)
    for thread in tuple(self._threads):  # `submit` may have started one.
        works_for(lane, thread)
    note(future)
    return future


@functools.wraps(_add_done_callback)
def _named_callback(self: Future[Any], fn: Callable[[Future[Any]], Any]) -> None:
    """Give a callback a lane: a pool's thread calls it after its job, which has ended then."""
    # asyncio's own callbacks only wake an event loop.
    if getattr(fn, "__module__", None) == "asyncio.futures" or (lane := lane_for(fn)) is None:
        return _add_done_callback(self, fn)

    def call_on_lane(future: Future[Any]) -> Any:
        with on_lane(lane):
            return fn(future)

    return _add_done_callback(self, call_on_lane)


def job_of(fn: Any, args: tuple[Any, ...]) -> Any:
    """Return what a pool is given to run, without the contexts and partials around it."""
    job, _ = _in_contexts(fn, args)
    return job


def _below_seam(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with crossing_seam():
        return fn(*args, **kwargs)


def _traced(fn: Any) -> Any:
    """Return the function below OpenTelemetry's wrapper of a job, which has no `__wrapped__`."""
    if getattr(fn, "__module__", None) != "opentelemetry.instrumentation.threading":
        return fn
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False))
    return cells["original_func"].cell_contents if "original_func" in cells else fn


def _in_contexts(fn: Any, args: tuple[Any, ...]) -> tuple[Any, list[contextvars.Context]]:
    """Return the job itself and the contexts it brings along.

    `asyncio.to_thread` brings one; LangGraph's pool one, and that of LangChain below it another.
    OpenTelemetry wraps jobs before we see them, or after: that depends on who patched first.
    """
    contexts: list[contextvars.Context] = []
    while True:
        fn = _traced(fn)
        if isinstance(fn, functools.partial):
            fn, args = fn.func, (*fn.args, *args)
        context = getattr(fn, "__self__", None)
        if not (isinstance(context, contextvars.Context) and args):
            return fn, contexts
        contexts.append(context)
        fn, args = args[0], args[1:]
