"""Return sets of tasks and futures in the order in which they were started.

Python iterates such a set in the order of addresses, which differs from process to process.
asyncio's `as_completed` starts its tasks from a set, and `wait` returns two sets, here and in
`concurrent.futures`. While a session is open, all of them use the order of starting.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import itertools
from collections.abc import Iterator
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from tracefork_core.exchange.current import is_crossing_seam
from tracefork_core.exchange.lane import session_of_lane

T = TypeVar("T")

_wait = asyncio.wait
_as_completed = asyncio.as_completed
_wait_for_jobs = concurrent.futures.wait
_jobs_as_completed = concurrent.futures.as_completed
_number = itertools.count().__next__
_started: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def note(started: object) -> None:
    """Note that a task or a future was started, unless that was noted before."""
    _started.setdefault(started, _number())


class InOrder(set[T]):
    """A set that iterates over its members in the order in which they were started."""

    def __iter__(self) -> Iterator[T]:
        return iter(sorted(super().__iter__(), key=_start_number))

    def pop(self) -> T:
        for first in self:
            self.remove(first)
            return first
        return super().pop()

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if self else "set()"


def _start_number(started: object) -> tuple[bool, int]:
    number = _started.get(started)
    return number is None, number or 0


def _is_ours() -> bool:
    return session_of_lane() is not None and not is_crossing_seam()


def _noted(given: Any) -> Any:
    """Number the tasks and futures of a list, which has an order, if they have no number."""
    if isinstance(given, (list, tuple)):
        for one in given:
            if asyncio.isfuture(one) or isinstance(one, concurrent.futures.Future):
                note(one)
    return given


@functools.wraps(_wait)
async def _wait_in_order(fs: Any, **options: Any) -> Any:
    if not _is_ours():
        return await _wait(fs, **options)
    done, pending = await _wait(_noted(fs), **options)
    return InOrder(done), InOrder(pending)


def _begun(fs: Any) -> Any:
    """Start the coroutines in the order in which they are given."""
    if not _is_ours() or asyncio.isfuture(fs) or inspect.iscoroutine(fs):
        return fs
    return [asyncio.ensure_future(one) for one in dict.fromkeys(fs)]


@functools.wraps(_as_completed)
def _begun_in_order(fs: Any, *, timeout: float | None = None) -> Any:
    return _as_completed(_begun(fs), timeout=timeout)


@functools.wraps(_as_completed)
def _begun_in_order_later(fs: Any, *, timeout: float | None = None) -> Any:
    """Start them when the first result is requested, as Python does before 3.13."""
    yield from _as_completed(_begun(fs), timeout=timeout)


@functools.wraps(_wait_for_jobs)
def _wait_for_jobs_in_order(fs: Any, *args: Any, **options: Any) -> Any:
    if not _is_ours():
        return _wait_for_jobs(fs, *args, **options)
    ended = _wait_for_jobs(_noted(fs), *args, **options)
    return type(ended)(InOrder(ended.done), InOrder(ended.not_done))


@functools.wraps(_jobs_as_completed)
def _jobs_in_order(fs: Any, timeout: float | None = None) -> Any:
    if _is_ours():
        fs = InOrder(_noted(fs))
        done = [job for job in fs if job.done()]
        yield from done
        fs.difference_update(done)
    yield from _jobs_as_completed(fs, timeout)


SWAPS: list[tuple[object, object]] = [
    (_wait, _wait_in_order),
    (
        _as_completed,
        _begun_in_order_later if inspect.isgeneratorfunction(_as_completed) else _begun_in_order,
    ),
    (_wait_for_jobs, _wait_for_jobs_in_order),
    (_jobs_as_completed, _jobs_in_order),
]
