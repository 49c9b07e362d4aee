"""The wall clock on tape: recorded when it is read, read again at replay.

Reads are kept per lane and call site: one sequence per lane would break as soon as a library reads
the clock once more on replay. Reads below a seam stay real and off the tape, since the machinery
there does not run at replay. A site with no recorded value left goes on from the last value that
was given (or from the first one of the tape) in real time, and counts as a miss.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import accumulate, pairwise
from types import FrameType

from tracefork_core.determinism import wall
from tracefork_core.errors import UsageError
from tracefork_core.exchange.current import current_session, is_crossing_seam
from tracefork_core.exchange.lane import current_lane
from tracefork_core.tape.event import DRAWS, Draws, Reads
from tracefork_core.tape.writer import TapeWriter

SOURCE = "clock"
_TICK_NS = 1_000
_OURS = "tracefork_core."


class RecordedClock:
    """The clock of one session: real and written down, or read back."""

    def __init__(self, session: object, recorded: Iterable[Reads] | None = None) -> None:
        self.session = session
        self.misses = 0
        self._replaying = recorded is not None
        # Re-entrant: a finalizer that runs in the middle of a read may read the clock.
        self._lock = threading.RLock()
        self._fresh: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._given: dict[tuple[str, str], deque[int]] = defaultdict(deque)
        for reads in recorded or ():
            if reads.source == SOURCE:
                self._given[reads.lane, reads.site].extend(accumulate(reads.values))
        self._last = min((values[0] for values in self._given.values() if values), default=None)
        self._given_at = time.monotonic_ns()

    def read(self, site: str) -> int:
        """Return nanoseconds since the epoch for a read at this call site."""
        key = (current_lane(self.session), site)
        if not self._replaying:
            now = wall.real_ns()
            with self._lock:
                self._fresh[key].append(now)
            return now
        with self._lock:
            if values := self._given.get(key):
                self._last = values.popleft()
            else:
                # In real time: a wait for a moment to come must not need a million reads.
                self.misses += 1
                passed = max(time.monotonic_ns() - self._given_at, _TICK_NS)
                self._last = (self._last or wall.real_ns()) + passed
            self._given_at = time.monotonic_ns()
            return self._last

    def flush(self, sink: TapeWriter) -> None:
        """Put what was read since the last flush on the tape, ahead of what depends on it."""
        with self._lock:
            fresh, self._fresh = self._fresh, defaultdict(list)
        if fresh:
            reads = [Reads(SOURCE, lane, site, _steps(v)) for (lane, site), v in fresh.items()]
            sink.note(DRAWS, aside=Draws(reads))


class _Sessions:
    """Hands each read to the clock of the session that runs there."""

    def __init__(self) -> None:
        self.clocks: list[RecordedClock] = []

    def time_ns(self) -> int:
        if not is_crossing_seam():
            try:
                session = current_session()
            except UsageError:
                session = None  # A thread of nobody's: to read the clock must not fail there.
            for clock in self.clocks:
                if clock.session is session:
                    site = _site(sys._getframe(1))
                    return wall.real_ns() if site is None else clock.read(site)
        return wall.real_ns()

    def _start(self) -> None: ...

    def _stop(self) -> None: ...


_sessions = _Sessions()
_lock = threading.Lock()


def start(clock: RecordedClock) -> None:
    """Let the wall clock of this process be answered by `clock` inside its session."""
    with _lock:
        if not _sessions.clocks:
            wall.take(_sessions)
        _sessions.clocks.append(clock)


def stop(clock: RecordedClock) -> None:
    """Undo `start`."""
    with _lock:
        _sessions.clocks.remove(clock)
        if not _sessions.clocks:
            wall.give_back(_sessions)


def _site(frame: FrameType | None) -> str | None:
    """Name the call site of a read, or None where tracefork itself reads the clock."""
    while frame is not None and frame.f_globals.get("__name__") == "time_machine":
        frame = frame.f_back
    if frame is None:
        return "?"
    module = frame.f_globals.get("__name__", "?")
    return None if module.startswith(_OURS) else f"{module}:{frame.f_lineno}"


def _steps(values: list[int]) -> list[int]:
    """Spell values as the first and the differences: small numbers make small tapes."""
    return [values[0], *(b - a for a, b in pairwise(values))]
