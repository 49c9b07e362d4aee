"""The waiting of a fork: before the fork point as recorded, after it for real.

All of it goes onto the branch, in the turns it had or gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tracefork_core.session.waits import (
    CUT_SHORT,
    SLEEP,
    TIMER,
    WAIT,
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

    def __init__(self, replayed: ReplayedWaits, recorded: RecordedWaits) -> None:
        self._replayed = replayed
        self._recorded = recorded

    def sleep(self, seconds: float, site: str) -> None:
        turn = self._replayed.next(site)
        if turn is None or turn == CUT_SHORT:
            self._recorded.sleep(seconds, site)
            return
        self._replayed.sleep_until(turn, seconds)
        self._recorded.note(site, turn)

    async def asleep(self, seconds: float, site: str) -> None:
        turn = self._replayed.next(site)
        if turn is None:
            await self._recorded.asleep(seconds, site)
            return
        try:
            await self._replayed.asleep_until(turn, seconds)
        except BaseException:
            self._recorded.note(site, CUT_SHORT)
            raise
        self._recorded.note(site, turn)

    def timer(self, site: str) -> ForkedTimer | RecordedTimer:
        replayed, recorded = self._replayed.timer(site), self._recorded.timer(site)
        return recorded if replayed.turn is None else ForkedTimer(replayed, recorded)


class ForkedTimer:
    """A timer that fired before the fork point when this was recorded."""

    def __init__(self, replayed: ReplayedTimer, recorded: RecordedTimer) -> None:
        self._replayed = replayed
        self._recorded = recorded

    def begin(self, is_pending: Callable[[], bool]) -> None:
        self._replayed.begin(is_pending)

    def fire(self) -> None:
        self._replayed.fire()
        self._recorded.note(WAIT, self._replayed.turn)

    async def afire(self) -> None:
        await self._replayed.afire()
        self._recorded.note(TIMER, self._replayed.turn)


def waits_before(waits: Iterable[Reads], later: Sequence[Exchange]) -> Iterator[Reads]:
    """Yield what was over before the first delivery of the exchanges from the fork point on."""
    first = min((turns[0] for one in later for turns in one.aside.turns), default=None)
    for reads in waits:
        if first is None:
            yield reads
        elif reads.source == SLEEP:
            over = [i for i, turn in enumerate(reads.values) if CUT_SHORT < turn < first]
            yield Reads(SLEEP, reads.lane, reads.site, reads.values[: over[-1] + 1 if over else 0])
        else:
            fired = [value for pair in pairs(reads) if pair[1] < first for value in pair]
            yield Reads(reads.source, reads.lane, reads.site, fired)
