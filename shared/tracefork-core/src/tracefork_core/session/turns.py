"""Deliver what comes from outside in the order it came when it was recorded.

Completion order is part of a program's meaning: joins append in arrival order, and the next prompt
shows it. Every delivery of a recording (a head, a chunk, an end, a failure) has a turn; at replay a
delivery waits until all earlier turns were delivered or given up. A delivery to another exchange
than the last also waits until the loop is quiet and other threads are at rest, so that what the
last one set off is done.

The end of a sleep has a turn as well, but a *soft* one: at replay it may not come at all, since a
loop that waits for something sleeps as often as that takes. So it is with what answers an auxiliary
request, until that is asked. When everything is quiet and nobody
waits for a soft turn that is due, it is passed by.

Nobody waits for ever. On an event loop whatever can ask does ask, so a turn that nobody takes is a
divergence. A thread may be kept from asking by a lock, or by a smaller pool than that of the
recording: there the first who waits goes ahead, out of order. What was never asked for is found
when the run ends.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import sleep as real_asleep
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import sleep as real_sleep
from typing import NamedTuple

from tracefork_core.session.pace import Pace
from tracefork_core.session.quiet import until_quiet
from tracefork_core.session.rest import Rest
from tracefork_core.session.waking import Locked, loop_is_running, sleeper
from tracefork_core.session.waking import woken as was_woken
from tracefork_core.tape import Exchange

STALL_SECONDS = 30.0
"""How much longer than when it was recorded a task waits before the replay is given up."""
_TIMER_SECONDS = 0.002
"""How often those look who wait for a timer to fire."""
GRACE_SECONDS = 2.0
"""How much longer than when it was recorded a thread waits before it goes ahead."""


def turns_of(recorded: Iterable[Exchange], *, ordered: bool = True) -> Iterator[tuple[int, int]]:
    """Yield the turns of exchanges, each with its owner.

    Those of auxiliary exchanges are soft, where turns are waited for at all.
    """
    for exchange in recorded:
        for first, count in exchange.aside.turns:
            for turn in range(first, first + count):
                soft = ordered and exchange.is_auxiliary
                yield turn, owner_of(exchange.aside.turns[0][0]) if soft else exchange.n


def owner_of(turn: int) -> int:
    """Return whose soft turn it is, for a turnstile: no exchange has such a number."""
    return -1 - turn


class StallError(Exception):
    """Nothing was delivered for `.seconds`; `.owner` is the exchange everybody waits for."""

    def __init__(self, owner: int, seconds: float) -> None:
        self.owner = owner
        self.seconds = seconds
        super().__init__(f"exchange {owner} did not take its turn for {seconds:.1f} s")


class _Standing(NamedTuple):
    """Where somebody stands who waits for a turn.

    `stuck`: only quiet can tell who is next. `hold`: seconds to let pass before looking again.
    `before`: how many turns have passed.
    """

    due: bool
    stuck: bool
    hold: float
    before: int


class Turnstile:
    """The turns of one replay. `turns` are pairs of (turn, owner).

    An owner is the number of an exchange; less than zero it owns a soft turn. `skipped` counts the
    turns that somebody went ahead of.
    """

    def __init__(self, turns: Iterable[tuple[int, int]], rest: Rest, pace: Pace) -> None:
        self._rest = rest
        self._pace = pace
        self._held = 0
        self._order = sorted(turns)
        self._due = 0
        self._given_up: set[int] = set()
        self._absent: set[int] = set()
        self._lock = threading.Lock()
        self._letting_leave = Locked(self._lock, self._let_leave)
        self._leaving: deque[int] = deque()
        self._waiting: dict[object, Callable[[], object]] = {}
        self._here: set[int] = set()
        self._timers: dict[int, Callable[[], bool]] = {}
        self._last_owner: int | None = None
        self._open = False
        self.skipped = 0

    def wait(self, turn: int, owner: int, patience: float, moment: int = 0) -> None:
        """Block this thread until `turn` is due, or nothing has moved for long, and take it.

        `moment` is when it was delivered, in the time of the recording.
        """
        at_rest = False
        try:
            while True:
                with self._letting_leave:
                    due, stuck, hold, before = self._stands(turn, owner, moment)
                    rests = at_rest or self._last_owner == owner or self._rest.alone
                    if due and hold == 0 and rests:
                        return self._take(turn, owner)
                    if not due and loop_is_running():
                        # To block an event loop would stop those this waits for.
                        self.skipped += owner >= 0
                        return self._give_up(turn)
                    woken = None if due else threading.Event()
                    if woken is not None:
                        self._waiting[turn] = woken.set
                if hold:
                    with self._holding():
                        real_sleep(hold)
                    at_rest = False
                elif woken is None or stuck:
                    self._rest.wait()
                    at_rest = due  # Who was only in the way may have gone on since.
                    if stuck:
                        self._rest.wait()  # Once more: a thread may be between two sleeps.
                        self._resolve(before)
                elif not woken.wait(patience + GRACE_SECONDS):
                    self._go_ahead(before)
        except BaseException:
            self._stay_away(turn)
            raise

    async def await_turn(self, turn: int, owner: int, patience: float, moment: int = 0) -> None:
        """Wait on the event loop until `turn` is due and the loop is quiet, and take it.

        Raises:
            StallError: nothing moved for `patience` and `STALL_SECONDS`.
        """
        quiet = False
        try:
            while True:
                with self._letting_leave:
                    due, stuck, hold, before = self._stands(turn, owner, moment)
                    if due and hold == 0 and (quiet or self._last_owner == owner):
                        return self._take(turn, owner)
                    woken = None if due else self._sleeper(turn)
                if hold:
                    with self._holding():
                        await real_asleep(hold)
                    quiet = False
                elif woken is None or stuck:
                    await until_quiet(self._rest, self._is_stuck if stuck else None)
                    quiet = woken is None
                    if stuck:
                        self._resolve(before)
                elif not await was_woken(woken, patience + STALL_SECONDS):
                    self._check_moved(before, patience)
        except BaseException:
            self._stay_away(turn)
            raise

    def last_turn(self, owner: int) -> int:
        """Return a turn after all others, for one who waits until they were taken."""
        with self._lock:
            turn = self._order[-1][0] + 1 if self._order else 0
            self._order.append((turn, owner))
            return turn

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

    def come_for(self, turn: int) -> None:
        """Let nobody pass a soft turn by: who will wait for it is on the way."""
        with self._letting_leave:
            self._here.add(turn)

    def expect(self, turn: int, is_pending: Callable[[], bool]) -> None:
        """Hold back what comes after a soft turn: a timer takes it, as long as it is pending."""
        with self._letting_leave:
            self._here.add(turn)
            self._timers[turn] = is_pending

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

    def _stay_away(self, turn: int) -> None:
        """Wait no longer for a turn, which is not given up: whoever waited may come again."""
        with self._letting_leave:
            self._here.discard(turn)
            self._waiting.pop(turn, None)
            self._wake_first()

    def _stands(self, turn: int, owner: int, moment: int) -> _Standing:
        self._absent.discard(owner)
        self._here.add(turn)
        if self._timers:
            self._pass_cancelled_timers()
        due = self._is_due(turn)
        if due:
            hold = self._pace.seconds_until(moment)
        else:
            hold = _TIMER_SECONDS if self._timer_is_due() else 0.0
        return _Standing(due, not due and self._is_stuck(), hold, self._due)

    def _is_due(self, turn: int) -> bool:
        return self._open or self._due >= len(self._order) or self._order[self._due][0] >= turn

    def _is_stuck(self) -> bool:
        """Return whether a soft turn is due that nobody came for."""
        if self._open or self._due >= len(self._order):
            return False
        due, owner = self._order[self._due]
        return owner < 0 and due not in self._here

    def _timer_is_due(self) -> bool:
        return self._due < len(self._order) and self._order[self._due][0] in self._timers

    def _pass_cancelled_timers(self) -> None:
        """Pass by timers that were stopped this time: nobody says so when that happens."""
        for turn in [turn for turn, is_pending in self._timers.items() if not is_pending()]:
            self._give_up(turn)

    def _resolve(self, before: int) -> None:
        """Pass by the soft turn that nobody came for until everything was quiet."""
        with self._letting_leave:
            if self._due == before and self._is_stuck():
                self._give_up(self._order[before][0])

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Let nobody lose patience while a timer is waited for."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def _take(self, turn: int, owner: int) -> None:
        self._last_owner = owner
        self._give_up(turn)

    def _give_up(self, turn: int) -> None:
        self._here.discard(turn)
        self._timers.pop(turn, None)
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
                if owner < 0:  # What a timer set off is not done yet, whoever is next.
                    self._last_owner = None
            elif owner in self._absent:
                self.skipped += owner >= 0
            else:
                break
            self._due += 1
        if start < self._due < len(order):
            turn, owner = order[self._due]
            if owner < 0 and turn not in self._waiting:
                self._wake_first()
            self._wake(turn)

    def _wake_first(self) -> None:
        """Let whoever is next see to a soft turn: nobody may come for it, or a timer will."""
        turns = [turn for turn in self._waiting if isinstance(turn, int)]
        if turns:
            self._wake(min(turns))

    def _wake(self, turn: int) -> None:
        if wake := self._waiting.pop(turn, None):
            wake()

    def _go_ahead(self, before: int) -> None:
        """Pass by those who stay away, up to the first turn that somebody waits for."""
        with self._letting_leave:
            waited_for = set(self._waiting)
            if self._open or self._held or self._due != before:
                return
            while self._order[self._due][0] not in waited_for:
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
