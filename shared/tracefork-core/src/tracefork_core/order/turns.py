"""Whose turn it is: the order in which things came when they were recorded.

Every delivery of a recording (a head, a chunk, an end, a failure) has a turn; at replay it is due
when all earlier turns were taken or given up.

The end of a sleep has a turn as well, but a *soft* one: at replay it may not come at all, since a
loop that waits for something sleeps as often as that takes. So it is with what answers an auxiliary
request, until that is asked. When everything is quiet and nobody waits for a soft turn that is due,
it is passed by.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from tracefork_core.order.pace import Pace
from tracefork_core.order.waking import Locked
from tracefork_core.tape import Exchange

_TIMER_SECONDS = 0.002
"""How often those look who wait for a timer to fire."""


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


class Turns:
    """The turns of one replay, and who stands where. `turns` are pairs of (turn, owner).

    An owner is the number of an exchange; less than zero it owns a soft turn. `skipped` counts the
    turns that somebody went ahead of.
    """

    def __init__(self, turns: Iterable[tuple[int, int]], pace: Pace) -> None:
        self._pace = pace
        self._held = 0
        self._order = sorted(turns)
        self._due = 0
        self._given_up: set[int] = set()
        self._absent: set[int] = set()
        self._lock = threading.Lock()
        self._leaving: deque[int] = deque()
        self._letting_leave = Locked(self._lock, self._leaving, self._let_leave)
        self._waiting: dict[object, Callable[[], object]] = {}
        self._here: set[int] = set()
        self._standing: set[int] = set()  # Whoever was woken still stands here, and looks anew.
        self._timers: dict[int, Callable[[], bool]] = {}
        self._last_owner: int | None = None
        self._last_moment = 0
        self._open = False
        self.skipped = 0

    def last_turn(self, owner: int) -> int:
        """Return a turn after all others, for one who waits until they were taken."""
        with self._lock:
            turn = self._order[-1][0] + 1 if self._order else 0
            self._order.append((turn, owner))
            return turn

    def come_for(self, turn: int) -> None:
        """Let nobody pass a soft turn by: who will wait for it is on the way."""
        with self._letting_leave:
            self._here.add(turn)

    def expect(self, turn: int, is_pending: Callable[[], bool]) -> None:
        """Hold back what comes after a soft turn: a timer takes it, as long as it is pending."""
        with self._letting_leave:
            self._here.add(turn)
            self._timers[turn] = is_pending

    def expects(self) -> bool:
        """Return whether a timer is yet to take its turn."""
        with self._letting_leave:
            self._pass_cancelled_timers()
            return bool(self._timers)

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
            self._standing.discard(turn)
            self._waiting.pop(turn, None)
            self._wake_first()

    def _stands(self, turn: int, owner: int, moment: int) -> tuple[bool, bool, float, int]:
        """Return where somebody stands who waits for a turn, with the lock held.

        Whether it is due; whether only quiet can tell who is next; the seconds to let pass before
        looking again; how many turns have passed.
        """
        self._absent.discard(owner)
        self._here.add(turn)
        self._standing.add(turn)
        if self._timers:
            self._pass_cancelled_timers()
        due = self._is_due(turn)
        if due:
            hold = self._pace.seconds_until(moment)
        else:
            hold = _TIMER_SECONDS if self._timer_is_due() else 0.0
        return due, not due and self._is_stuck(), hold, self._due

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

    def _passes(self, turn: int, owner: int, moment: int) -> bool:
        """Take a turn at once, with the lock held, where it is next and nobody else is concerned.

        Most are: this is what `_stands` and `_take` come to, in a fraction of the time.
        """
        if self._waiting or self._timers or self._absent or self._given_up or self._open:
            return False
        if self._due >= len(self._order) or self._order[self._due] != (turn, owner) or owner < 0:
            return False
        if self._pace.seconds_until(moment):
            return False
        self._last_owner = owner
        self._last_moment = moment or self._last_moment
        self._due += 1
        return True

    def _take(self, turn: int, owner: int, moment: int) -> None:
        self._last_owner = owner
        self._last_moment = moment or self._last_moment  # A sleep has none.
        self._give_up(turn)

    def _give_up(self, turn: int) -> None:
        self._here.discard(turn)
        self._standing.discard(turn)
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
        if self._waiting and start < self._due < len(order):
            turn, owner = order[self._due]
            if owner < 0 and turn not in self._waiting:
                self._wake_first()
            self._wake(turn)

    def _wake_first(self) -> None:
        """Let whoever is next see to a soft turn: nobody may come for it, or a timer will."""
        if turns := self._waited_for():
            self._wake(min(turns))

    def _waited_for(self) -> list[int]:
        """Return the turns that are waited for; others wait for the end of the replay."""
        return [turn for turn in self._waiting if isinstance(turn, int)]

    def _wake(self, turn: int) -> None:
        if wake := self._waiting.pop(turn, None):
            wake()
