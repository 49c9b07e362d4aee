"""Deliver what comes from outside in the order it came when it was recorded.

Completion order is part of a program's meaning: joins append in arrival order, and the next prompt
shows it. Every delivery of a recording (a head, a chunk, an end, a failure) has a turn; at replay a
delivery waits until all earlier turns were delivered or given up. On an event loop a delivery to
another exchange than the last also waits until the loop is quiet, so that what the last one set
off is done.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable

STALL_SECONDS = 30.0
_QUIET_ROUNDS = 300


class Stalled(Exception):
    """Nothing was delivered for `STALL_SECONDS`; `.owner` is the exchange everybody waits for."""

    def __init__(self, owner: int) -> None:
        self.owner = owner
        super().__init__(f"exchange {owner} was not asked for")


class Turnstile:
    """The turns of one replay. `turns` are pairs of (turn, number of the exchange)."""

    def __init__(self, turns: Iterable[tuple[int, int]]) -> None:
        self._order = sorted(turns)
        self._due = 0
        self._given_up: set[int] = set()
        self._changed = threading.Condition()
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._threads_waiting = 0
        self._last_owner: int | None = None
        self._broken = False

    def wait(self, turn: int, owner: int) -> None:
        """Block this thread until `turn` is due, and take it.

        Raises:
            Stalled: nothing moved for a long time.
        """
        with self._changed:
            if self._is_due(turn):
                return self._take(turn, owner)
            if _loop_is_running():
                # A blocking call on an event loop: to wait here would stop those it waits for.
                return self._give_up(turn)
            self._threads_waiting += 1
            try:
                while not self._is_due(turn):
                    before = self._due
                    moved = self._changed.wait(STALL_SECONDS)
                    if not moved and before == self._due:
                        raise Stalled(self._order[self._due][1])
            finally:
                self._threads_waiting -= 1
            self._take(turn, owner)

    async def await_turn(self, turn: int, owner: int) -> None:
        """Wait on the event loop until `turn` is due and the loop is quiet, and take it.

        Raises:
            Stalled: nothing moved for a long time.
        """
        quiet = False
        while True:
            with self._changed:
                due = self._is_due(turn)
                if due and (quiet or self._last_owner in (None, owner)):
                    return self._take(turn, owner)
                before = self._due
                sleeper = None if due else self._sleep()
            if sleeper is None:
                await _until_quiet()
                quiet = True
                continue
            done, _ = await asyncio.wait([sleeper], timeout=STALL_SECONDS)
            if not done and before == self._due:
                sleeper.cancel()
                raise Stalled(self._order[self._due][1])

    def give_up(self, turns: Iterable[int]) -> None:
        """Let nobody wait for these turns any more."""
        with self._changed:
            for turn in turns:
                self._give_up(turn)

    def break_open(self) -> None:
        """Let everybody through: the session is poisoned, order means nothing now."""
        with self._changed:
            self._broken = True
            self._wake()

    def _is_due(self, turn: int) -> bool:
        return self._broken or self._due >= len(self._order) or self._order[self._due][0] >= turn

    def _take(self, turn: int, owner: int) -> None:
        self._last_owner = owner
        self._give_up(turn)

    def _give_up(self, turn: int) -> None:
        self._given_up.add(turn)
        start = self._due
        while self._due < len(self._order) and self._order[self._due][0] in self._given_up:
            self._given_up.discard(self._order[self._due][0])
            self._due += 1
        if self._due != start:
            self._wake()

    def _wake(self) -> None:
        if self._threads_waiting:
            self._changed.notify_all()
        sleepers, self._sleepers = self._sleepers, []
        for loop, sleeper in sleepers:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, sleeper)

    def _sleep(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        self._sleepers.append((loop, sleeper))
        return sleeper


def _resolve(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _until_quiet() -> None:
    """Yield until no other callback is ready; bounded, since two waiters keep each other awake."""
    ready = getattr(asyncio.get_running_loop(), "_ready", None)
    for _ in range(_QUIET_ROUNDS if ready is not None else 20):
        await asyncio.sleep(0)
        if ready is not None and not ready:
            return
