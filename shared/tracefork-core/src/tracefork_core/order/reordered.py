"""Deliver what overlaps in another order than the recorded one, to find races.

Whenever everything is quiet, one of those who wait gets its delivery: the one that ranks first.
What waits at the same time was not ordered by the program, so each of these orders could have come
about.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from tracefork_core.order.pace import Pace
from tracefork_core.order.thread_rest import Rest
from tracefork_core.order.turnstile import Turnstile

Order = int | Sequence[int]
"""A seed, or numbers of exchanges in the order in which they are to be completed."""


class Reordered(Turnstile):
    """A turnstile without turns: who waits is let through by rank.

    `completed` are the owners in the order in which their last delivery was taken.
    """

    def __init__(
        self, turns: Iterable[tuple[int, int]], rest: Rest, pace: Pace, order: Order
    ) -> None:
        turns = sorted(turns)
        super().__init__(turns, rest, pace)
        self._owners = dict(turns)
        self._ranks = _ranks(turns, order)
        self._last = {owner: turn for turn, owner in turns}
        self._elected: int | None = None
        self.completed: list[int] = []

    def _passes(self, turn: int, owner: int, moment: int) -> bool:
        """Nobody passes at once: whose turn it is, is chosen."""
        return False

    def _is_due(self, turn: int) -> bool:
        return self._open or self._elected == turn

    def _is_stuck(self) -> bool:
        return not self._open and self._elected is None

    def _timer_is_due(self) -> bool:
        """Return whether a timer that ranks before all who wait may still fire."""
        if self._elected is not None or not self._standing:
            return False
        first = min(map(self._rank, self._standing))
        return any(self._rank(timer) < first for timer in self._timers)

    def _resolve(self, before: int) -> None:
        """Choose who is next."""
        with self._letting_leave:
            if self._standing and self._is_stuck() and not self._timer_is_due():
                self._elected = min(self._standing, key=self._rank)
                self._wake(self._elected)

    def _rank(self, turn: int) -> tuple[int, int]:
        # Where a tape was cut off, what it does not hold comes last.
        return self._ranks.get(self._owners.get(turn, turn), turn), turn

    def _take(self, turn: int, owner: int, moment: int) -> None:
        if self._last.get(owner) == turn:
            self.completed.append(owner)
        super()._take(turn, owner, moment)

    def _stay_away(self, turn: int) -> None:
        with self._letting_leave:
            if self._elected == turn:
                self._elected = None
        super()._stay_away(turn)

    def _give_up(self, turn: int) -> None:
        self._here.discard(turn)
        self._standing.discard(turn)
        self._timers.pop(turn, None)
        self._wake(turn)
        if self._elected == turn:
            self._elected = None
        if self._elected is None:
            self._wake_first()

    def _go_ahead(self, before: int) -> None:
        """Nobody goes ahead: who waits is chosen sooner or later."""

    def _check_moved(self, before: int, patience: float) -> None:
        """Nothing stalls: whoever waits can be chosen."""


def _ranks(turns: Sequence[tuple[int, int]], order: Order) -> dict[int, int]:
    """Return the rank of each owner, the recorded ones dealt out anew."""
    completed = {owner: turn for turn, owner in turns}
    if isinstance(order, int):
        owners, ranks = list(completed), list(completed.values())
        random.Random(order).shuffle(ranks)  # noqa: S311 - to be had again from its seed
        return dict(zip(owners, ranks, strict=True))
    named = [number for number in dict.fromkeys(order) if number in completed]
    return completed | dict(zip(named, sorted(completed[n] for n in named), strict=True))
