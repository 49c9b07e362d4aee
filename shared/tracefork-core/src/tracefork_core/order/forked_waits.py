"""The waiting of a fork: before the fork point as recorded, after it for real.

All of it goes onto the branch, in the turns it had or gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tracefork_core.order.forked_turnstile import ForkedTurnstile
from tracefork_core.order.waits import (
    AT_ONCE,
    CUT_SHORT,
    SLEEP,
    RecordedTimer,
    RecordedWaits,
    ReplayedTimer,
    ReplayedWaits,
    pairs,
)
from tracefork_core.tape import Exchange
from tracefork_core.tape.event import Reads


class ForkedWaits:
    """Sleeps as the tape knows of, and for real once it does not."""

    def __init__(
        self, replayed: ReplayedWaits, recorded: RecordedWaits, turnstile: ForkedTurnstile
    ) -> None:
        self._replayed = replayed
        self._recorded = recorded
        self._turnstile = turnstile

    def sleep(self, seconds: float, site: str) -> None:
        turn = self._replayed.next(site)
        if turn is None or turn == CUT_SHORT:
            self._recorded.sleep(seconds, site)
            return
        ending = self._recorded.begin(site)
        self._replayed.sleep_until(turn, seconds)
        ending.append(self._turnstile.place(turn))

    async def asleep(self, seconds: float, site: str) -> None:
        turn = self._replayed.next(site)
        if turn is None or turn == CUT_SHORT:
            # If a limit cut it short before the fork point, that fires yet, and does so again.
            still = self._turnstile.expects if turn == CUT_SHORT else None
            await self._recorded.asleep(seconds, site, still)
            return
        ending = self._recorded.begin(site)
        try:
            await self._replayed.asleep_until(turn, seconds)
        except BaseException:
            ending.append(CUT_SHORT)
            raise
        ending.append(self._turnstile.place(turn))

    def timer(self, site: str, source: str) -> ForkedTimer | RecordedTimer:
        replayed = self._replayed.timer(site, source)
        recorded = self._recorded.timer(site, source)
        if replayed.turn is None:
            return recorded
        return ForkedTimer(replayed, recorded, replayed.turn, self._turnstile)


class ForkedTimer:
    """A timer that fired before the fork point when this was recorded."""

    def __init__(
        self,
        replayed: ReplayedTimer,
        recorded: RecordedTimer,
        turn: int,
        turnstile: ForkedTurnstile,
    ) -> None:
        self._replayed = replayed
        self._recorded = recorded
        self._turn = turn
        self._turnstile = turnstile

    def is_over(self, *, now: bool) -> bool:
        if over := self._replayed.is_over(now=now):
            self._recorded.note(self._turn)
        return over

    def begin(self, is_pending: Callable[[], bool]) -> None:
        self._replayed.begin(is_pending)

    def fire(self) -> None:
        self._replayed.fire()
        self._recorded.note(self._turnstile.place(self._turn))

    async def afire(self) -> None:
        await self._replayed.afire()
        self._recorded.note(self._turnstile.place(self._turn))


def waits_before(waits: Iterable[Reads], later: Sequence[Exchange]) -> Iterator[Reads]:
    """Yield what was over before the first delivery of the exchanges from the fork point on."""
    first = min((turns[0] for one in later for turns in one.aside.turns), default=None)
    for reads in waits:
        if first is None:
            yield reads
        elif reads.source == SLEEP:
            yield Reads(SLEEP, reads.lane, reads.site, _over_before(first, reads.values))
        else:
            fired = [value for pair in pairs(reads) if _place(pair[1]) < first for value in pair]
            yield Reads(reads.source, reads.lane, reads.site, fired)


def _over_before(first: int, sleeps: Sequence[int]) -> list[int]:
    """Return in which turns sleeps were over before a turn, in the order in which they began.

    One that lasts longer than another that began after it is none that ends before the fork point.
    """
    before = [turn if turn < first else CUT_SHORT for turn in sleeps]
    while before and before[-1] != sleeps[len(before) - 1]:
        before.pop()
    return before


def _place(turn: int) -> int:
    return AT_ONCE - turn if turn <= AT_ONCE else turn
