"""One line for all deliveries of a fork, those of its tape and the live ones.

What is recorded and comes after something live has another turn on the branch than it had before:
the live one may have had to come first. The branch says so (`tape.moved`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from tracefork_core.order.pace import Pace
from tracefork_core.order.quiet import Gate
from tracefork_core.order.thread_rest import Rest
from tracefork_core.order.turnstile import GRACE_SECONDS, Turnstile
from tracefork_core.tape import TapeWriter
from tracefork_core.tape.event import TURNS, Moved


class ForkedTurnstile(Turnstile):
    """Where recorded deliveries wait for their turns, and for live ones that are under way."""

    def __init__(
        self, turns: Iterable[tuple[int, int]], rest: Rest, pace: Pace, gate: Gate
    ) -> None:
        super().__init__(turns, rest, pace)
        self._gate = gate
        self._end = self._order[-1][0] + 1 if self._order else 0
        self._later = itertools.count(self._end)
        self._since: int | None = None
        self._places: dict[int, int] = {}
        self._fresh: Moved | None = None

    def next_turn(self) -> int:
        """Take the turn of a live delivery."""
        with self._letting_leave:
            if self._since is None:
                left = self._order[self._due :]
                self._since = left[0][0] if left else self._end
                self._fresh = Moved(self._since, []) if left else None
                # What is next may not be asked for any more: the run goes its own way now.
                self._stall_seconds = GRACE_SECONDS
                for turn in self._waited_for():
                    self._wake(turn)
            return next(self._later)

    def place(self, turn: int) -> int:
        """Return the turn on the branch of what was delivered in a recorded turn."""
        return self._places.get(turn, turn)

    def flush(self, sink: TapeWriter) -> None:
        """Put on the tape which turns became others since the last time."""
        with self._letting_leave:
            fresh, self._fresh = self._fresh, None
        if fresh is not None:
            sink.note(TURNS, aside=fresh)

    def break_open(self) -> None:
        with self._letting_leave:
            for turn, _ in self._order:  # What did not come comes last: nobody waits for it.
                if turn not in self._places:
                    self._move(turn)
        super().break_open()

    def _passes(self, turn: int, owner: int, moment: int) -> bool:
        return self._since is None and super()._passes(turn, owner, moment)

    def _take(self, turn: int, owner: int, moment: int) -> None:
        self._move(turn)
        super()._take(turn, owner, moment)

    def _move(self, turn: int) -> None:
        if self._since is not None and turn >= self._since:
            self._places[turn] = place = next(self._later)
            self._fresh = self._fresh or Moved(self._since, [])
            self._fresh.turns.append((turn, place))

    def _follows(self, owner: int) -> bool:
        return super()._follows(owner) and self._gate.last == owner

    def _settle(self, owner: int, limit: float | None) -> None:
        self._gate.pass_on(owner, limit)

    async def _asettle(self, owner: int, limit: float | None) -> None:
        await self._gate.apass_on(owner, limit)

    def _check_moved(self, before: int, patience: float) -> None:
        if self._since is None:
            super()._check_moved(before, patience)
        else:
            self._go_ahead(before)
