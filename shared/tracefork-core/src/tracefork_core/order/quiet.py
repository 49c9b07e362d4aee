"""Deliver one thing at a time: the next one when the effects of the last one are done.

Two responses that arrive in one round of an event loop resume two tasks at once. Which task gets
ahead depends on the number of `await`s in between, and no tape can keep that order. The same holds
for two threads that get responses at the same time. So each delivery, in recording and replay,
waits until the loop is quiet and the other threads of the run are at rest. On a loop with nothing
else to do that takes one round, about ten microseconds.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import sleep
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from tracefork_core.order.thread_rest import Rest, Waiting

_ROUNDS = 300
_BLIND_ROUNDS = 20
"""How many rounds to let pass on a loop that does not show which callbacks are ready."""
_POLL = 0.0002


class Gate:
    """Lets threads and tasks deliver one by one. `last` is the owner of the last delivery.

    A `limit` is the most seconds to wait for other threads, as in `Rest.wait`. `is_ours` tells
    which callbacks of a loop belong to the run. Without it, all do. The loop of a busy service is
    never quiet.
    """

    def __init__(self, rest: Rest, is_ours: Callable[[asyncio.Handle], bool] | None = None) -> None:
        self.rest = rest
        self.is_ours = is_ours
        self.last: object = None
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._passing: int | None = None

    def pass_on(self, owner: object, limit: float | None = None) -> None:
        """Block this thread until `owner` may deliver; pieces of one owner follow at once."""
        # A task on this thread's own event loop may hold the gate. Waiting would stop that loop.
        if self.rest.alone or self._passing == threading.get_ident():
            self.last = owner
            return
        with self._lock:
            if self.last != owner:
                self.rest.wait(limit)
                self.last = owner

    async def apass_on(self, owner: object, limit: float | None = None) -> None:
        """Wait on the event loop until `owner` may deliver."""
        queue = self._queues.setdefault(asyncio.get_running_loop(), _Queue())
        if queue.is_empty and self.last == owner and self.rest.alone:
            return
        async with queue:
            alone = self.rest.alone
            # A thread lock does not wake an event loop when it is released.
            while not (alone or self._lock.acquire(blocking=False)):  # noqa: ASYNC110
                await sleep(_POLL)
            self._passing = None if alone else threading.get_ident()
            try:
                if self.last != owner:
                    await until_quiet(self.rest, limit=limit, is_ours=self.is_ours)
                    self.last = owner
            finally:
                if not alone:
                    self._passing = None
                    self._lock.release()


class _Queue:
    """The tasks of one event loop that have something to deliver, in order of arrival."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    async def __aenter__(self) -> None:
        ticket = asyncio.get_running_loop().create_future()
        self._waiting.append(ticket)
        if self._waiting[0] is not ticket:
            try:
                await ticket
            except BaseException:
                self._leave(ticket)
                raise

    async def __aexit__(self, *error: object) -> None:
        self._leave(self._waiting[0])

    def _leave(self, ticket: asyncio.Future[None]) -> None:
        was_first = self._waiting[0] is ticket
        self._waiting.remove(ticket)
        if was_first and self._waiting and not self._waiting[0].done():
            self._waiting[0].set_result(None)


async def until_quiet(
    rest: Rest,
    still: Callable[[], bool] | None = None,
    limit: float | None = None,
    is_ours: Callable[[asyncio.Handle], bool] | None = None,
) -> None:
    """Yield until no callback is ready and no thread runs, or `still` returns False.

    Bounded: two tasks that wait keep one another awake. `limit` and `is_ours` are as in `Gate`.
    """
    ready = getattr(asyncio.get_running_loop(), "_ready", None)
    waiting, left = Waiting(rest, limit), _BLIND_ROUNDS if ready is None else _ROUNDS
    while True:
        await sleep(0)
        if still is not None and not still():
            return
        if left > 0 and (ready is None or (any(map(is_ours, tuple(ready))) if is_ours else ready)):
            left -= 1
            continue
        if rest.alone:
            return
        if not rest.lock.acquire(blocking=False):
            await sleep(_POLL)
            continue
        try:
            over = waiting.is_over()
        finally:
            rest.lock.release()
        if over and waiting.saw_programs:
            await sleep(0)  # The loop sees the end of a subprocess in its next round.
        # Callbacks that a thread scheduled here were ready before the thread came to rest.
        if over and (left <= 0 or not ready):
            return


def has_nothing_to_do(seconds: float) -> bool:
    """Return whether only another thread can give this loop work within `seconds`.

    No callback is ready, no timer fires soon, and it watches no socket or pipe but its own.
    """
    loop: Any = asyncio.get_running_loop()
    ready, selector = getattr(loop, "_ready", None), getattr(loop, "_selector", None)
    if ready is None or ready or selector is None or len(selector.get_map()) > 1:
        return False
    soon = loop.time() + seconds
    return all(timer.cancelled() or timer.when() > soon for timer in loop._scheduled)  # noqa: SLF001
