"""Deliver what comes from outside in the order it came when it was recorded.

Completion order is part of a program's meaning: joins append in arrival order, and the next prompt
shows it. At replay a delivery waits until its turn is due (see `turns`). A delivery to another
exchange than the last also waits until the loop is quiet and other threads are at rest, so that
what the last one set off is done.

Nobody waits for ever. On an event loop whatever can ask does ask, so a turn that nobody takes is a
divergence. A thread may be kept from asking by a lock, or by a smaller pool than that of the
recording: there the first who waits goes ahead, out of order. What was never asked for is found
when the run ends.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import sleep as real_asleep
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import sleep as real_sleep

from tracefork_core.exchange.running import loop_is_running
from tracefork_core.order.pace import Pace
from tracefork_core.order.quiet import until_quiet
from tracefork_core.order.thread_rest import LIMIT_SECONDS, Rest
from tracefork_core.order.turns import Turns
from tracefork_core.order.waking import sleeper
from tracefork_core.order.waking import woken as was_woken
from tracefork_core.patching.real_clock import monotonic_ns

STALL_SECONDS = 30.0
"""How much longer than when it was recorded a task waits before the replay is given up."""
GRACE_SECONDS = 2.0
"""How much longer than when it was recorded a thread waits before it goes ahead."""
_LOOK_SECONDS = 0.01


class StallError(Exception):
    """Nothing was delivered for `.seconds`; `.owner` is the exchange everybody waits for."""

    def __init__(self, owner: int, seconds: float) -> None:
        self.owner = owner
        self.seconds = seconds
        super().__init__(f"exchange {owner} did not take its turn for {seconds:.1f} s")


class Turnstile(Turns):
    """Where threads and tasks wait for their turns."""

    def __init__(self, turns: Iterable[tuple[int, int]], rest: Rest, pace: Pace) -> None:
        super().__init__(turns, pace)
        self._rest = rest
        self._stall_seconds = STALL_SECONDS

    def wait(self, turn: int, owner: int, patience: float, moment: int = 0) -> None:
        """Block this thread until `turn` is due, or nothing has moved for long, and take it.

        `moment` is when it was delivered, in the time of the recording.
        """
        with self._letting_leave:
            if (self._follows(owner) or self._rest.alone) and self._passes(turn, owner, moment):
                return None
        at_rest = False
        try:
            while True:
                with self._letting_leave:
                    due, stuck, hold, before = self._stands(turn, owner, moment)
                    rests = at_rest or self._follows(owner) or self._rest.alone
                    if due and hold == 0 and rests:
                        return self._take(turn, owner, moment)
                    if not due and loop_is_running():
                        # To block an event loop would stop those this waits for.
                        self.skipped += owner >= 0
                        return self._take(turn, owner, moment)
                    woken = None if due else threading.Event()
                    if woken is not None:
                        self._waiting[turn] = woken.set
                if hold:
                    with self._holding():
                        real_sleep(hold)
                    at_rest = False
                elif stuck:
                    self._rest.wait()
                    self._rest.wait()  # Once more: a thread may be between two sleeps.
                    self._resolve(before)
                elif woken is None:
                    self._settle(owner, self._limit(moment))
                    at_rest = True
                elif not woken.wait(patience + GRACE_SECONDS):
                    self._rest.wait(STALL_SECONDS)  # Who is first may only be slower now.
                    self._go_ahead(before)
        except BaseException:
            self._stay_away(turn)
            raise

    async def await_turn(self, turn: int, owner: int, patience: float, moment: int = 0) -> None:
        """Wait on the event loop until `turn` is due and the loop is quiet, and take it.

        Raises:
            StallError: nothing moved for `patience` and `STALL_SECONDS`.
        """
        with self._letting_leave:
            if self._follows(owner) and self._passes(turn, owner, moment):
                return None
        quiet = False
        try:
            while True:
                with self._letting_leave:
                    due, stuck, hold, before = self._stands(turn, owner, moment)
                    if due and hold == 0 and (quiet or self._follows(owner)):
                        return self._take(turn, owner, moment)
                    woken = None if due else self._sleeper(turn)
                if hold:
                    with self._holding():
                        await real_asleep(hold)
                    quiet = False
                elif stuck:
                    await until_quiet(self._rest, self._is_stuck)
                    self._resolve(before)
                elif woken is None:
                    await self._asettle(owner, self._limit(moment))
                    quiet = True
                elif not await was_woken(woken, patience + self._stall_seconds):
                    self._check_moved(before, patience)
        except BaseException:
            self._stay_away(turn)
            raise

    def wait_for_others(self, is_missing: Callable[[], bool]) -> None:
        """Block this thread while something `is_missing` that others may do: for a moment.

        On an event loop nobody is waited for: its tasks do nothing meanwhile.
        """
        until = monotonic_ns() + int(GRACE_SECONDS * 1e9)
        while not loop_is_running() and is_missing() and monotonic_ns() < until:
            # One that was just started is not known to be of the run yet.
            if self._rest.alone and threading.active_count() == 1:
                return
            real_sleep(_LOOK_SECONDS)

    def wait_for_end(self, patience: float) -> None:
        """Block this thread until the replay is over, or for `patience` and `STALL_SECONDS`."""
        if loop_is_running():
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
        await was_woken(woken, patience + STALL_SECONDS)

    def _follows(self, owner: int) -> bool:
        """Return whether a delivery goes on with the last one: then nothing else is under way."""
        return self._last_owner == owner

    def _settle(self, owner: int, limit: float | None) -> None:
        """Block this thread until what the last delivery set off is done, before one of `owner`."""
        self._rest.wait(limit)

    async def _asettle(self, owner: int, limit: float | None) -> None:
        """Wait on the event loop as `_settle` does in a thread."""
        await until_quiet(self._rest, limit=limit)

    def _limit(self, moment: int) -> float | None:
        """Return how long others are waited for to come to rest before this delivery.

        Where little time had passed since the one before, they had come to rest in the recording:
        they do so again, however slow this machine is.
        """
        if not (moment and self._last_moment):
            return None
        passed = (moment - self._last_moment) / 1e9
        return STALL_SECONDS if 0 <= passed < LIMIT_SECONDS / 2 else None

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Let nobody lose patience while a timer is waited for."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def _go_ahead(self, before: int) -> None:
        """Pass by those who stay away, up to the first turn that somebody waits for."""
        with self._letting_leave:
            if self._open or self._held or self._due != before:
                return
            while self._order[self._due][0] not in self._standing:
                self._absent.add(self._order[self._due][1])
                self._advance()

    def _check_moved(self, before: int, patience: float) -> None:
        with self._letting_leave:
            if self._due == before and not (self._open or self._held):
                owners = (owner for _, owner in self._order[before:] if owner >= 0)
                # Behind soft turns alone, only sleeps and limits wait, and they go on.
                raise StallError(next(owners, -1), patience + STALL_SECONDS)

    def _sleeper(self, key: object) -> asyncio.Future[None]:
        future, self._waiting[key] = sleeper()
        return future
