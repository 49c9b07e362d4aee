"""Make no more live calls a minute than a provider takes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from tracefork_core.errors import UsageError

_MINUTE = 60.0


class Pacer:
    """Says when forks may begin. What one fork asks of its own is not held back.

    Args:
        rate: live calls a minute; None for as many as come.
        clock: seconds that only grow.
        sleep: waits for some seconds.

    Raises:
        UsageError: the rate is none.
    """

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if rate is not None and not rate > 0:
            raise UsageError(
                "tracefork: a rate (--rate) is a number of live calls a minute, above 0."
            )
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._made: deque[tuple[float, int]] = deque()

    def take(self, live: Sequence[int]) -> int:
        """Wait until the first of some forks may begin; return how many may begin with it.

        `live` says how many calls each of them is going to make. One that makes more than a minute
        allows begins when nothing was asked for a minute.
        """
        while self._rate is not None:
            recent = self._recent()
            count, planned = 0, 0
            for calls in live:
                if recent + planned + calls > self._rate:
                    break
                count, planned = count + 1, planned + calls
            if count or not recent:
                return max(1, count)
            self._sleep(max(0.0, self._made[0][0] + _MINUTE - self._clock()))
        return len(live)

    def made(self, calls: int) -> None:
        """Count the live calls of a fork that is over."""
        if self._rate is not None and calls:
            self._made.append((self._clock(), calls))

    def _recent(self) -> int:
        """Return how many calls were made in the last minute."""
        since = self._clock() - _MINUTE
        while self._made and self._made[0][0] <= since:
            self._made.popleft()
        return sum(calls for _, calls in self._made)
