"""Chance that is asked for by name, for programs that want nothing patched.

A source from `run.nondet` is on the tape. `Drifting` is not, and shows that a replay notices.
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
from tracefork_core.chance.draws import observers, sighted
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
            ValueError: the size is below zero.
        """

    def now(self) -> dt.datetime:
        """Return the time, in UTC."""
        return _EPOCH + dt.timedelta(microseconds=self._time_ns() // 1000)

    def uuid(self) -> uuid.UUID:
        """Return a random UUID (version 4)."""
        return uuid.UUID(bytes=self.urandom(16), version=4)

    def random(self) -> float:
        """Return a number from 0.0 up to, and without, 1.0."""
        return (int.from_bytes(self.urandom(7)) >> 56 - _FLOAT_BITS) / (1 << _FLOAT_BITS)

    def choice(self, options: Sequence[T]) -> T:
        """Return one of a sequence that is not empty.

        Raises:
            IndexError: it is empty.
        """
        if not options:
            raise IndexError("tracefork: there is nothing to choose from: the sequence is empty.")
        # 128 bits more than needed: what is left of the bias, nobody can measure.
        return options[int.from_bytes(self.urandom(24)) % len(options)]


class OnTape(NondetSource):
    """The source of a run: recorded, or read back."""

    def __init__(self, session: Session, clock: RecordedClock, entropy: RecordedEntropy) -> None:
        self._session = session
        self._clock = clock
        self._entropy = entropy

    def _time_ns(self) -> int:
        frame, where = self._asked()
        now = self._clock.read(where)
        if observers:
            sighted("clock", now, frame)
        return now

    def urandom(self, size: int) -> bytes:
        frame, where = self._asked()
        if size < 0:
            raise ValueError(f"tracefork: there are no {size} bytes: a size is 0 or more.")
        drawn = self._entropy.draw(where, size)
        if observers:
            sighted("entropy", drawn, frame)
        return drawn

    def _asked(self) -> tuple[FrameType | None, str]:
        if not self._session.active:
            raise UsageError(
                "tracefork: this source belongs to a run that has ended, or to another process. "
                "Take `run.nondet` of the run that is open here."
            )
        where, frame = call_site(2, ())
        return frame, where or "?"


class Drifting(NondetSource):
    """Fresh values in every run, replays too: the negative control of a test of determinism.

    What comes from here is on no tape; a replay of what it went into diverges.
    """

    def _time_ns(self) -> int:
        return system_clock.real_ns()

    def urandom(self, size: int) -> bytes:
        return real_urandom(size)
