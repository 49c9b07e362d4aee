"""Deliver one thing at a time: the next when what the last one set off is done.

Two answers that arrive in one round of an event loop set two tasks off at once, and which of them
gets where first hangs on the number of `await`s in between: an order that no tape can keep. Two
threads that are answered at the same time are no better. So while recording, as at replay, each
delivery waits until the loop is quiet and the other threads of the run are at rest. On a loop that
has nothing else to do that takes one round, some ten microseconds.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import sleep
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

from tracefork_core.order.thread_rest import Rest, Waiting

_ROUNDS = 300
_BLIND_ROUNDS = 20
_POLL = 0.0002


class Gate:
    """Lets those pass, one by one, who have something to deliver in a recording.

    `last` is who passed last. How long others are waited for is at most `limit`, as in `Rest.wait`.
    """

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._passing: int | None = None
        self.last: object = None

    def pass_on(self, owner: object, limit: float | None = None) -> None:
        """Block this thread until `owner` may deliver; pieces of one owner follow at once."""
        # A task of a loop that this thread runs may be passing: to wait for it is to stop it.
        if self._rest.alone or self._passing == threading.get_ident():
            self.last = owner
            return
        with self._lock:
            if self.last != owner:
                self._rest.wait(limit)
                self.last = owner

    async def apass_on(self, owner: object, limit: float | None = None) -> None:
        """Wait on the event loop until `owner` may deliver."""
        line = self._lines.setdefault(asyncio.get_running_loop(), _Line())
        if line.is_empty and self.last == owner and self._rest.alone:
            return
        async with line:
            alone = self._rest.alone
            # Nobody tells a loop that a lock of threads is free.
            while not (alone or self._lock.acquire(blocking=False)):  # noqa: ASYNC110
                await sleep(_POLL)
            self._passing = None if alone else threading.get_ident()
            try:
                if self.last != owner:
                    await until_quiet(self._rest, limit=limit)
                    self.last = owner
            finally:
                if not alone:
                    self._passing = None
                    self._lock.release()


class _Line:
    """Those who have something to deliver on one event loop, in the order they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    async def __aenter__(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        if self._waiting[0] is not place:
            try:
                await place
            except BaseException:
                self._leave(place)
                raise

    async def __aexit__(self, *error: object) -> None:
        self._leave(self._waiting[0])

    def _leave(self, place: asyncio.Future[None]) -> None:
        was_first = self._waiting[0] is place
        self._waiting.remove(place)
        if was_first and self._waiting and not self._waiting[0].done():
            self._waiting[0].set_result(None)


async def until_quiet(
    rest: Rest, still: Callable[[], bool] | None = None, limit: float | None = None
) -> None:
    """Yield until no callback is ready and no thread runs, as long as that is `still` asked.

    Bounded: two who wait keep one another awake. `limit` is as in `Rest.wait`.
    """
    ready = getattr(asyncio.get_running_loop(), "_ready", None)
    waiting, left = Waiting(rest, limit), _BLIND_ROUNDS if ready is None else _ROUNDS
    while True:
        await sleep(0)
        if still is not None and not still():
            return
        if left > 0 and (ready is None or ready):
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
            await sleep(0)  # Of the end of one the loop hears in its next round.
        # What a thread left to this loop was ready before the thread came to rest.
        if over and (left <= 0 or not ready):
            return
