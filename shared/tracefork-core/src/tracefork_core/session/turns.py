"""Deliver what comes from outside in the order it came when it was recorded.

Completion order is part of a program's meaning: joins append in arrival order, and the next prompt
shows it. Every delivery of a recording (a head, a chunk, an end, a failure) has a turn; at replay a
delivery waits until all earlier turns were delivered or given up. On an event loop a delivery to
another exchange than the last also waits until the loop is quiet, so that what the last one set
off is done.

Nobody waits for ever. On an event loop whatever can ask does ask, so a turn that nobody takes is a
divergence. A thread may be kept from asking by a lock, or by a smaller pool than that of the
recording: there the first who waits goes ahead, out of order. What was never asked for is found
when the run ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from tracefork_core.session.quiet import until_quiet

STALL_SECONDS = 30.0
"""How much longer than when it was recorded a task waits before the replay is given up."""
GRACE_SECONDS = 2.0
"""How much longer than when it was recorded a thread waits before it goes ahead."""


class StallError(Exception):
    """Nothing was delivered for `.seconds`; `.owner` is the exchange everybody waits for."""

    def __init__(self, owner: int, seconds: float) -> None:
        self.owner = owner
        self.seconds = seconds
        super().__init__(f"exchange {owner} did not take its turn for {seconds:.1f} s")


class Turnstile:
    """The turns of one replay. `turns` are pairs of (turn, number of the exchange).

    `skipped` counts the turns that somebody went ahead of.
    """

    def __init__(self, turns: Iterable[tuple[int, int]]) -> None:
        self._order = sorted(turns)
        self._due = 0
        self._given_up: set[int] = set()
        self._absent: set[int] = set()
        self._lock = threading.Lock()
        self._letting_leave = _Locked(self._lock, self._let_leave)
        self._leaving: deque[int] = deque()
        self._waiting: dict[object, Callable[[], object]] = {}
        self._last_owner: int | None = None
        self._open = False
        self.skipped = 0

    def wait(self, turn: int, owner: int, patience: float) -> None:
        """Block this thread until `turn` is due, or nothing has moved for long, and take it."""
        try:
            while True:
                with self._letting_leave:
                    self._absent.discard(owner)
                    if self._is_due(turn):
                        return self._take(turn, owner)
                    if _loop_is_running():
                        # To block an event loop would stop those this waits for.
                        self.skipped += 1
                        return self._give_up(turn)
                    woken, before = threading.Event(), self._due
                    self._waiting[turn] = woken.set
                if not woken.wait(patience + GRACE_SECONDS):
                    self._go_ahead(before)
        except BaseException:
            self.give_up((turn,))
            raise

    async def await_turn(self, turn: int, owner: int, patience: float) -> None:
        """Wait on the event loop until `turn` is due and the loop is quiet, and take it.

        Raises:
            StallError: nothing moved for `patience` and `STALL_SECONDS`.
        """
        quiet = False
        try:
            while True:
                with self._letting_leave:
                    self._absent.discard(owner)
                    due, before = self._is_due(turn), self._due
                    if due and (quiet or self._last_owner in (None, owner)):
                        return self._take(turn, owner)
                    woken = None if due else self._sleeper(turn)
                if woken is None:
                    await until_quiet()
                    quiet = True
                elif not await _woken(woken, patience + STALL_SECONDS):
                    self._check_moved(before, patience)
        except BaseException:
            self.give_up((turn,))
            raise

    def last_turn(self, owner: int) -> int:
        """Return a turn after all others, for one who waits until they were taken."""
        with self._lock:
            turn = self._order[-1][0] + 1 if self._order else 0
            self._order.append((turn, owner))
            return turn

    def wait_for_end(self, patience: float) -> None:
        """Block this thread until the replay is over, or for `patience` and `STALL_SECONDS`."""
        if _loop_is_running():
            return
        woken = threading.Event()
        with self._letting_leave:
            if self._open:
                return
            self._waiting[woken] = woken.set
        woken.wait(patience + STALL_SECONDS)

    async def await_end(self, patience: float) -> None:
        """Wait on the event loop as `wait_for_end` does in a thread."""
        with self._letting_leave:
            if self._open:
                return
            woken = self._sleeper(object())
        await _woken(woken, patience + STALL_SECONDS)

    def give_up(self, turns: Iterable[int]) -> None:
        """Let nobody wait for these turns any more.

        Takes no lock that is taken: the garbage collector may be who closes a stream, in the middle
        of anything this thread does. Whoever holds the lock does it on leaving.
        """
        self._leaving.extend(turns)
        self._let_leave()

    def break_open(self) -> None:
        """Let everybody through: the replay is over or has failed, order means nothing now."""
        with self._letting_leave:
            self._open = True
            waiting, self._waiting = self._waiting, {}
        for wake in waiting.values():
            wake()

    def _let_leave(self) -> None:
        while self._leaving and self._lock.acquire(blocking=False):
            try:
                while self._leaving:
                    self._give_up(self._leaving.popleft())
            finally:
                self._lock.release()

    def _is_due(self, turn: int) -> bool:
        return self._open or self._due >= len(self._order) or self._order[self._due][0] >= turn

    def _take(self, turn: int, owner: int) -> None:
        self._last_owner = owner
        self._give_up(turn)

    def _give_up(self, turn: int) -> None:
        self._wake(turn)
        self._given_up.add(turn)
        self._advance()

    def _advance(self) -> None:
        """Pass what was taken, given up, or belongs to an exchange that stays away."""
        order, start = self._order, self._due
        while self._due < len(order):
            turn, owner = order[self._due]
            if turn in self._given_up:
                self._given_up.discard(turn)
            elif owner in self._absent:
                self.skipped += 1
            else:
                break
            self._due += 1
        if start < self._due < len(order):
            self._wake(order[self._due][0])

    def _wake(self, turn: int) -> None:
        if wake := self._waiting.pop(turn, None):
            wake()

    def _go_ahead(self, before: int) -> None:
        """Pass by those who stay away, up to the first turn that somebody waits for."""
        with self._letting_leave:
            waited_for = set(self._waiting)
            if self._open or self._due != before:
                return
            while self._order[self._due][0] not in waited_for:
                self._absent.add(self._order[self._due][1])
                self._advance()

    def _check_moved(self, before: int, patience: float) -> None:
        with self._letting_leave:
            if self._due == before and not self._open:
                raise StallError(self._order[before][1], patience + STALL_SECONDS)

    def _sleeper(self, key: object) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            with suppress(RuntimeError):  # A loop that was closed has nobody to wake.
                loop.call_soon_threadsafe(_resolve, future)

        self._waiting[key] = wake
        return future


class _Locked:
    """Hold a lock, and do something after letting it go."""

    def __init__(self, lock: threading.Lock, afterwards: Callable[[], None]) -> None:
        self._lock = lock
        self._afterwards = afterwards

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        self._afterwards()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _woken(future: asyncio.Future[None], seconds: float) -> bool:
    done, _ = await asyncio.wait([future], timeout=seconds)
    return bool(done)


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
