"""The agent's own waiting in a fork: as recorded before the fork point, in real time after it.

The branch stores all sleeps and timers, with their recorded or new turns.
"""

from __future__ import annotations

from collections.abc import Callable

from tracefork_core.order.endings import CUT_SHORT, Ending
from tracefork_core.order.policies import Forked
from tracefork_core.order.turnstile import Turnstile
from tracefork_core.order.waits import RecordedTimer, RecordedWaits, ReplayedTimer, ReplayedWaits


class ForkedWaits:
    """Ends recorded sleeps in their turns; other sleeps take real time."""

    def __init__(
        self,
        replayed: ReplayedWaits,
        recorded: RecordedWaits,
        turnstile: Turnstile,
        branch: Forked,
    ) -> None:
        self._replayed = replayed
        self._recorded = recorded
        self._turnstile = turnstile
        self._branch = branch

    def sleep(self, seconds: float, site: str) -> None:
        ending = self._replayed.next(site)
        if ending is None or ending.turn is None:
            self._recorded.sleep(seconds, site)
            return
        sleep = self._recorded.begin(site)
        self._replayed.sleep_until(ending.turn, seconds)
        sleep.ending = Ending(self._branch.place(ending.turn))

    async def asleep(self, seconds: float, site: str) -> None:
        ending = self._replayed.next(site)
        if ending is None:
            await self._recorded.asleep(seconds, site)
            return
        if ending.turn is None:
            # The timeout that cut it short before the fork point will fire again.
            await self._recorded.asleep(seconds, site, self._turnstile.expects_timers)
            return
        sleep = self._recorded.begin(site)
        try:
            await self._replayed.asleep_until(ending.turn, seconds)
        except BaseException:
            sleep.ending = CUT_SHORT
            raise
        sleep.ending = Ending(self._branch.place(ending.turn))

    def timer(self, site: str, source: str) -> ForkedTimer | RecordedTimer:
        replayed = self._replayed.timer(site, source)
        recorded = self._recorded.timer(site, source)
        if replayed.ending is None or replayed.ending.turn is None:
            return recorded
        return ForkedTimer(replayed, recorded, replayed.ending, self._branch)


class ForkedTimer:
    """A timer that fired before the fork point in the recording."""

    def __init__(
        self, replayed: ReplayedTimer, recorded: RecordedTimer, ending: Ending, branch: Forked
    ) -> None:
        self._replayed = replayed
        self._recorded = recorded
        self._ending = ending
        self._branch = branch

    def is_over(self, *, now: bool) -> bool:
        if over := self._replayed.is_over(now=now):
            self._recorded.note(self._ending)
        return over

    def begin(self, is_pending: Callable[[], bool]) -> None:
        self._replayed.begin(is_pending)

    def fire(self) -> None:
        self._replayed.fire()
        self._note()

    async def afire(self) -> None:
        await self._replayed.afire()
        self._note()

    def _note(self) -> None:
        assert self._ending.turn is not None
        self._recorded.note(Ending(self._branch.place(self._ending.turn)))
