"""Run the jobs of `multiprocessing.pool.ThreadPool` on lanes, whenever their pool was made.

Its workers take jobs from a queue, without the context of the code that gave them. So each job, and
each item of a `map`, gets its lane when it is given. joblib's threads use this pool too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from types import ModuleType
from typing import Any

from tracefork_core.exchange.contract import Lane
from tracefork_core.exchange.lane import on_lane, session_of_lane
from tracefork_core.order.spawning import lane_for
from tracefork_core.patching.instrument import Instrument, Undo
from tracefork_core.patching.patch import Patches


class _Job:
    """A call that runs on a lane."""

    def __init__(self, lane: Lane, function: Callable[..., Any], arguments: tuple[Any, ...]):
        self._lane = lane
        self._function = function
        self._arguments = arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with on_lane(self._lane):
            return self._function(*self._arguments, *args, **kwargs)


def _run(job: Callable[[], Any]) -> Any:
    return job()


def _on_lane(function: Any) -> Any:
    lane = None if function is None else lane_for(function)
    return function if lane is None else _Job(lane, function, ())


def _jobs(function: Any, items: Iterable[Any], *, spread: bool = False) -> Iterator[Any]:
    """Yield a job for each item; `spread` passes the item as several arguments."""
    for item in items:
        arguments = tuple(item) if spread else (item,)
        if (lane := lane_for(function)) is not None:
            yield _Job(lane, function, arguments)
        else:
            yield lambda arguments=arguments: function(*arguments)


def _instrument(library: ModuleType) -> Undo:
    def is_ours(pool: Any) -> bool:
        return isinstance(pool, library.ThreadPool) and session_of_lane() is not None

    def apply_async(original: Any) -> Any:
        @wraps(original)
        def apply_on_lane(
            self: Any,
            func: Any,
            args: Any = (),
            kwds: Any = {},  # noqa: B006 - as it is there
            callback: Any = None,
            error_callback: Any = None,
        ) -> Any:
            if is_ours(self):
                func = _on_lane(func)
                callback, error_callback = _on_lane(callback), _on_lane(error_callback)
            return original(self, func, args, kwds, callback, error_callback)

        return apply_on_lane

    def map_async(original: Any) -> Any:
        @wraps(original)
        def map_on_lanes(
            self: Any, func: Any, iterable: Any, mapper: Any, *args: Any, **options: Any
        ) -> Any:
            if is_ours(self):
                spread = mapper is library.starmapstar
                iterable = list(_jobs(func, iterable, spread=spread))
                func, mapper = _run, library.mapstar
            return original(self, func, iterable, mapper, *args, **options)

        return map_on_lanes

    def imap(original: Any) -> Any:
        @wraps(original)
        def imap_on_lanes(self: Any, func: Any, iterable: Any, chunksize: int = 1) -> Any:
            if is_ours(self):
                # All lanes are named here: the pool iterates in a thread of its own.
                func, iterable = _run, list(_jobs(func, iterable))
            return original(self, func, iterable, chunksize)

        return imap_on_lanes

    patches = Patches()
    patches.wrap(library.Pool, "apply_async", apply_async)
    patches.wrap(library.Pool, "_map_async", map_async)
    patches.wrap(library.Pool, "imap", imap)
    patches.wrap(library.Pool, "imap_unordered", imap)
    return patches.undo


THREAD_POOLS = Instrument("multiprocessing.pool", _instrument)
