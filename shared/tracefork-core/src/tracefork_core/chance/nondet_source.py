"""Time and randomness that a program asks for by name, with nothing patched: `run.nondet`.

The values of `run.nondet` are on the tape. Those of `Drifting` are not: it is the negative control
that shows that a replay notices nondeterminism.
"""

from __future__ import annotations

import datetime as dt
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import FrameType
from typing import TypeVar

from tracefork_core.chance import system_clock
from tracefork_core.chance.clock import RecordedClock
from tracefork_core.chance.draws import observers, report_draw
from tracefork_core.chance.entropy import RecordedEntropy, real_urandom
from tracefork_core.errors import UsageError
from tracefork_core.exchange.call_sites import call_site
from tracefork_core.exchange.contract import Session

T = TypeVar("T")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FLOAT_BITS = 53


class NondetSource(ABC):
    """The time, ids and random values of a run."""

    @abstractmethod
    def _time_ns(self) -> int:
        """Return nanoseconds since the epoch."""

    @abstractmethod
    def urandom(self, size: int) -> bytes:
        """Return `size` random bytes.

        Raises:
            ValueError: `size` is negative.
        """

    def now(self) -> dt.datetime:
        """Return the time, in UTC."""
        return _EPOCH + dt.timedelta(microseconds=self._time_ns() // 1000)

    def uuid(self) -> uuid.UUID:
        """Return a random UUID (version 4)."""
        return uuid.UUID(bytes=self.urandom(16), version=4)

    def random(self) -> float:
        """Return a random float `x` with `0.0 <= x < 1.0`."""
        return (int.from_bytes(self.urandom(7)) >> 56 - _FLOAT_BITS) / (1 << _FLOAT_BITS)

    def choice(self, options: Sequence[T]) -> T:
        """Return a random element of `options`.

        Raises:
            IndexError: `options` is empty.
        """
        if not options:
            raise IndexError("tracefork: cannot choose from an empty sequence.")
        # 128 bits more than needed: the bias that is left cannot be measured.
        return options[int.from_bytes(self.urandom(24)) % len(options)]


class OnTape(NondetSource):
    """The source of a run: recorded, or answered from the tape."""

    def __init__(self, session: Session, clock: RecordedClock, entropy: RecordedEntropy) -> None:
        self._session = session
        self._clock = clock
        self._entropy = entropy

    def _time_ns(self) -> int:
        frame, where = self._asked()
        now = self._clock.read(where)
        if observers:
            report_draw("clock", now, frame)
        return now

    def urandom(self, size: int) -> bytes:
        frame, where = self._asked()
        if size < 0:
            raise ValueError(f"tracefork: size must be 0 or more (got {size}).")
        drawn = self._entropy.draw(where, size)
        if observers:
            report_draw("entropy", drawn, frame)
        return drawn

    def _asked(self) -> tuple[FrameType | None, str]:
        if not self._session.active:
            raise UsageError(
                "tracefork: this source belongs to a run that has ended, or to another process. "
                "Use `run.nondet` of the run that is open here."
            )
        where, frame = call_site(2, ())
        return frame, where or "?"


class Drifting(NondetSource):
    """New values in every run, replays too: the negative control for a test of determinism.

    The values are on no tape, so a replay of an agent that sends them diverges.
    """

    def _time_ns(self) -> int:
        return system_clock.real_ns()

    def urandom(self, size: int) -> bytes:
        return real_urandom(size)
