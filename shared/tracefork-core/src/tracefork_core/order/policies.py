"""Which turn is next: the recorded one, the recorded one of a fork, or one by rank.

A `Turnstile` makes threads and tasks wait; its policy says for which turn. All methods are called
with the line held, except for those that a session calls itself: `Forked.next_turn`, `place` and
`flush`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Protocol

from tracefork_core.order.turns import Arrival, Line
from tracefork_core.tape import TapeWriter
from tracefork_core.tape.event import TURNS, Moved

Order = int | Sequence[int]
"""A seed, or numbers of exchanges in the order in which they are to be completed."""


class Policy(Protocol):
    """What a turnstile asks of its policy.

    Attributes:
        is_simple: The due turn is next, whatever else has come: it can be taken without a look.
        is_live: Live deliveries come between the recorded ones.
        keeps_order: A turn that is next may never be asked for, and hold up all others.
        completed: The exchanges in the order of their last deliveries, where that is kept.
    """

    line: Line
    is_simple: bool
    is_live: bool
    keeps_order: bool

    @property
    def completed(self) -> Sequence[int]: ...

    def is_due(self, turn: int) -> bool:
        """Return whether a turn may be taken."""

    def is_undecided(self) -> bool:
        """Return whether only quiet can tell which turn is next."""

    def awaits_timer(self) -> bool:
        """Return whether a timer that still runs comes before all that wait."""

    def decide(self, position: int) -> None:
        """Decide which turn is next: everything was quiet, with the line at `position`."""

    def take(self, turn: int, owner: int) -> None:
        """Note that a turn is taken."""

    def end(self) -> None:
        """Note that the replay is over or has failed."""


class Recorded:
    """Turns come in their recorded order."""

    is_simple = True
    is_live = False
    keeps_order = True
    completed: Sequence[int] = ()

    def __init__(self, turns: Iterable[tuple[int, int]]) -> None:
        self.line = Line(turns)

    def is_due(self, turn: int) -> bool:
        due = self.line.due
        return due is None or due[0] >= turn

    def is_undecided(self) -> bool:
        due = self.line.due
        return due is not None and due[1] < 0 and due[0] not in self.line.here

    def awaits_timer(self) -> bool:
        due = self.line.due
        arrival = self.line.here.get(due[0]) if due else None
        return arrival is not None and arrival.is_pending is not None

    def decide(self, position: int) -> None:
        if self.line.position == position and self.is_undecided():
            self.line.pass_(self.line.order[position][0])

    def take(self, turn: int, owner: int) -> None: ...

    def end(self) -> None: ...


class Forked(Recorded):
    """Turns come in their recorded order, and live deliveries between them.

    A recorded delivery that comes after a live one has another turn on the branch than on its tape:
    the live one may have had to come first. The branch stores which (`tape.moved`).
    """

    def __init__(self, turns: Iterable[tuple[int, int]]) -> None:
        super().__init__(turns)
        order = self.line.order
        self._end = order[-1][0] + 1 if order else 0
        self._later = itertools.count(self._end)
        self._live_since: int | None = None
        self._places: dict[int, int] = {}
        self._unwritten: Moved | None = None

    def take(self, turn: int, owner: int) -> None:
        self._move(turn)

    def end(self) -> None:
        for turn, _ in self.line.order:  # What did not come comes last: nothing waits for it.
            if turn not in self._places:
                self._move(turn)

    def next_turn(self) -> int:
        """Take the next turn for a live delivery."""
        with self.line.held:
            if self._live_since is None:
                left = self.line.order[self.line.position :]
                self._live_since = left[0][0] if left else self._end
                self.is_simple, self.is_live = False, True
                self._unwritten = Moved(self._live_since, []) if left else None
                # From here on the run goes its own way, and may not ask for the due turn at all.
                # What waits is told, since it has less patience now.
                self.line.wake_all()
            return next(self._later)

    def place(self, turn: int) -> int:
        """Return the turn on the branch of what was delivered in a recorded turn."""
        return self._places.get(turn, turn)

    def flush(self, sink: TapeWriter) -> None:
        """Write the turns that moved since the last call to the tape."""
        with self.line.held:
            moved, self._unwritten = self._unwritten, None
        if moved is not None:
            sink.note(TURNS, aside=moved)

    def _move(self, turn: int) -> None:
        if self._live_since is not None and turn >= self._live_since:
            self._places[turn] = place = next(self._later)
            self._unwritten = self._unwritten or Moved(self._live_since, [])
            self._unwritten.turns.append((turn, place))


class Reordered:
    """What overlaps comes in another order than the recorded one, to find races.

    Whenever everything is quiet, the first by rank of all that wait is chosen. The program did not
    order what waits at the same time, so each of these orders could have come about.
    """

    is_simple = False
    is_live = False
    keeps_order = False

    def __init__(self, turns: Iterable[tuple[int, int]], order: Order) -> None:
        turns = sorted(turns)
        self.line = Line(turns)
        self._owners = dict(turns)
        self._ranks = _ranks(turns, order)
        self._last_turns = {owner: turn for turn, owner in turns}
        self._chosen: tuple[int, Arrival] | None = None
        self.completed: list[int] = []

    def is_due(self, turn: int) -> bool:
        return self.line.is_open or self._next() == turn

    def is_undecided(self) -> bool:
        return not self.line.is_open and self._next() is None

    def awaits_timer(self) -> bool:
        here = self.line.here
        waiting = list(filter(self.line.is_awaited, here))
        if not (waiting and self.is_undecided()):
            return False
        first = min(map(self._rank, waiting))
        return any(self._rank(turn) < first for turn, timer in here.items() if timer.is_pending)

    def decide(self, position: int) -> None:
        waiting = list(filter(self.line.is_awaited, self.line.here))
        if waiting and self.is_undecided() and not self.awaits_timer():
            turn = min(waiting, key=self._rank)
            self._chosen = turn, self.line.here[turn]
            self.line.wake(turn)

    def take(self, turn: int, owner: int) -> None:
        if self._last_turns.get(owner) == turn:
            self.completed.append(owner)
        self._chosen = None
        self.line.wake_first()

    def end(self) -> None: ...

    def _next(self) -> int | None:
        """Return the chosen turn, unless what waited for it has left without taking it."""
        if self._chosen is None:
            return None
        turn, arrival = self._chosen
        return turn if self.line.here.get(turn) is arrival else None

    def _rank(self, turn: int) -> tuple[int, int]:
        # Where a tape was cut off, what it does not hold comes last.
        return self._ranks.get(self._owners.get(turn, turn), turn), turn


def _ranks(turns: Sequence[tuple[int, int]], order: Order) -> dict[int, int]:
    """Return the rank of each owner: the recorded ranks, dealt out again."""
    completed = {owner: turn for turn, owner in turns}
    if isinstance(order, int):
        owners, ranks = list(completed), list(completed.values())
        random.Random(order).shuffle(ranks)  # noqa: S311 - repeatable from its seed
        return dict(zip(owners, ranks, strict=True))
    named = [number for number in dict.fromkeys(order) if number in completed]
    return completed | dict(zip(named, sorted(completed[n] for n in named), strict=True))
