"""Deliver one thing at a time on an event loop: the next when the loop is quiet.

Two answers that arrive in one round of the loop set two tasks off at once, and which of them gets
where first hangs on the number of `await`s in between: an order that no tape can keep. So while
recording, as at replay, each delivery waits until what the last one set off is done. On a loop that
has nothing else to do that takes one round, some ten microseconds.
"""

from __future__ import annotations

import asyncio
from collections import deque

_ROUNDS = 300
_BLIND_ROUNDS = 20


class Line:
    """Those who have something to deliver on one event loop, in the order they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._last: object = None

    async def pass_on(self, owner: object) -> None:
        """Return when `owner` may deliver; pieces of one owner follow one another at once."""
        if not self._waiting and self._last is owner:
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            if self._waiting[0] is not place:
                await place
            await until_quiet()
            self._last = owner
        finally:
            was_first = self._waiting[0] is place
            self._waiting.remove(place)
            if was_first and self._waiting and not self._waiting[0].done():
                self._waiting[0].set_result(None)


async def until_quiet() -> None:
    """Yield until no other callback is ready; bounded, since two waiters keep each other awake."""
    ready = getattr(asyncio.get_running_loop(), "_ready", None)
    for _ in range(_BLIND_ROUNDS if ready is None else _ROUNDS):
        await asyncio.sleep(0)
        if ready is not None and not ready:
            return
