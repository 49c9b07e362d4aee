"""The line of turns: the recorded order of deliveries, and the arrivals for each turn so far.

Every delivery of a recording (a head, a chunk, an end, a failure) has a turn, a number. At replay a
turn is due when all turns before it were taken or passed. Each turn is in one state:

    ahead     nothing has arrived for it (the line keeps no record of it)
    coming    a sleep or a timer of the agent will take it (an `Arrival` that is not `awaited`)
    awaited   a thread or task waits for it here (an `Arrival` that is)
    passed    taken or given up before it was due

An owner, an exchange, can be *absent*: others went ahead of it. Its turns are then passed as they
fall due, until it comes.

The end of a sleep has a *soft* turn: at replay it may never come, because code that polls sleeps a
different number of times in each run. The turns of an auxiliary request are soft until the agent
makes the request. A soft turn that is due is passed when everything is quiet and nothing has
arrived for it.

A single position in the recorded order is not enough, although most deliveries come in order: an
agent may close a stream early, and a garbage collector may do so in any thread at any moment.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tracefork_core.tape import Exchange


def turns_of(recorded: Iterable[Exchange], *, ordered: bool = True) -> Iterator[tuple[int, int]]:
    """Yield (turn, owner) for each delivery; those of auxiliary exchanges are soft if `ordered`."""
    for exchange in recorded:
        for first, count in exchange.aside.turns:
            for turn in range(first, first + count):
                soft = ordered and exchange.is_auxiliary
                yield turn, soft_owner(exchange.aside.turns[0][0]) if soft else exchange.n


def soft_owner(turn: int) -> int:
    """Return the owner of a soft turn: a negative number, which no exchange has."""
    return -1 - turn


@dataclass(slots=True, eq=False)
class Arrival:
    """What has come for a turn.

    Attributes:
        awaited: A thread or task waits for the turn. It may be running, to look again.
        wake: Wakes that thread or task while it is blocked; None while it is not.
        is_pending: Tells whether the timer that will take the turn still runs; None without one.
    """

    awaited: bool = False
    wake: Callable[[], object] | None = None
    is_pending: Callable[[], bool] | None = None


class Line:
    """The turns of one replay. Hold `held` to use it, except for `give_up`.

    Attributes:
        order: The recorded (turn, owner) pairs in order. An owner is the number of an exchange, or
            negative for a soft turn.
        position: The index in `order` of the turn that is due.
        here: The arrivals of turns that are coming or awaited.
        timers: How many of those a timer will take.
        passed: Turns that were taken or given up before they were due.
        absent: Owners that others went ahead of.
        skipped: How many turns of exchanges were overtaken.
        last_owner: The owner of the last delivery; None after a soft turn, because its effects may
            not be done when the next turn is due.
        is_open: Every turn is due: the replay is over or has failed.
    """

    def __init__(self, turns: Iterable[tuple[int, int]]) -> None:
        self.order = sorted(turns)
        self.position = 0
        self.here: dict[int, Arrival] = {}
        self.timers = 0
        self.passed: set[int] = set()
        self.absent: set[int] = set()
        self.skipped = 0
        self.last_owner: int | None = None
        self.is_open = False
        self._lock = threading.Lock()
        self._given_up: deque[int] = deque()
        self.held = _Held(self._lock, self._given_up, self._pass_given_up)

    @property
    def due(self) -> tuple[int, int] | None:
        """The turn that is due and its owner; None once the line is open."""
        if self.is_open or self.position >= len(self.order):
            return None
        return self.order[self.position]

    def add_last(self, owner: int) -> int:
        """Add a turn after all others and return it."""
        turn = self.order[-1][0] + 1 if self.order else 0
        self.order.append((turn, owner))
        return turn

    def come(self, turn: int, is_pending: Callable[[], bool] | None = None) -> None:
        """Keep a soft turn from being passed: a sleep or a timer will take it."""
        arrival = self._arrival(turn)
        self.timers += (is_pending is not None) - (arrival.is_pending is not None)
        arrival.is_pending = is_pending

    def stand(self, turn: int, owner: int) -> Arrival:
        """Note that a thread or task waits for a turn."""
        self.absent.discard(owner)
        arrival = self._arrival(turn)
        arrival.awaited = True
        return arrival

    def leave(self, turn: int) -> None:
        """Note that nothing waits for a turn any more. A later arrival is possible."""
        self._drop(turn)
        self.wake_first()

    def pass_(self, turn: int) -> None:
        """Note that a turn is over: taken or given up."""
        self.wake(turn)
        self._drop(turn)
        if self.position < len(self.order) and turn >= self.order[self.position][0]:
            self.passed.add(turn)
            self.advance()

    def pass_stopped_timers(self) -> None:
        """Pass the turns of timers that the agent stopped: Python does not report that."""
        if not self.timers:
            return
        for turn, arrival in list(self.here.items()):
            if arrival.is_pending is not None and not arrival.is_pending():
                self.pass_(turn)

    def advance(self) -> None:
        """Move to the first turn that is not over and whose owner is not absent."""
        order, start = self.order, self.position
        while self.position < len(order):
            turn, owner = order[self.position]
            if turn in self.passed:
                self.passed.discard(turn)
                if owner < 0:
                    self.last_owner = None
            elif owner in self.absent:
                self.skipped += owner >= 0
            else:
                break
            self.position += 1
        if self.here and start < self.position < len(order):
            turn, owner = order[self.position]
            if not self.wake(turn) and owner < 0:
                self.wake_first()

    def give_up(self, turns: Iterable[int]) -> None:
        """Pass these turns, now or when the lock is free.

        The garbage collector may close a stream at any moment, even while this thread holds the
        lock. So the thread that holds the lock passes these turns when it releases it.
        """
        self._given_up.extend(turns)
        self._pass_given_up()

    def wake_first(self) -> None:
        """Wake the first blocked arrival, so that it handles a soft turn or a timer that is due."""
        blocked = [turn for turn, arrival in self.here.items() if arrival.wake is not None]
        if blocked:
            self.wake(min(blocked))

    def wake_all(self) -> None:
        for turn in self.here:
            self.wake(turn)

    def wake(self, turn: int) -> bool:
        """Wake the arrival that is blocked for a turn; return whether there was one."""
        arrival = self.here.get(turn)
        if arrival is None or arrival.wake is None:
            return False
        wake, arrival.wake = arrival.wake, None
        wake()
        return True

    def is_awaited(self, turn: int) -> bool:
        arrival = self.here.get(turn)
        return arrival is not None and arrival.awaited

    def first_awaited(self) -> int | None:
        return min(filter(self.is_awaited, self.here), default=None)

    def last_awaited(self) -> int | None:
        return max(filter(self.is_awaited, self.here), default=None)

    def _arrival(self, turn: int) -> Arrival:
        arrival = self.here.get(turn)
        if arrival is None:
            arrival = self.here[turn] = Arrival()
        return arrival

    def _drop(self, turn: int) -> None:
        arrival = self.here.pop(turn, None)
        self.timers -= arrival is not None and arrival.is_pending is not None

    def _pass_given_up(self) -> None:
        while self._given_up and self._lock.acquire(blocking=False):
            try:
                while self._given_up:
                    self.pass_(self._given_up.popleft())
            finally:
                self._lock.release()


class _Held:
    """Hold a lock; after releasing it, pass the turns that were given up meanwhile."""

    def __init__(
        self, lock: threading.Lock, given_up: deque[int], pass_given_up: Callable[[], None]
    ) -> None:
        self._lock = lock
        self._given_up = given_up
        self._pass_given_up = pass_given_up

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        if self._given_up:
            self._pass_given_up()
