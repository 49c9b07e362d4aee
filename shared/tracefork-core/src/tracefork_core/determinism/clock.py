"""The wall clock on tape: recorded when it is read, read again at replay.

Reads are kept per lane and call site: one sequence per lane would break as soon as a library reads
the clock once more on replay. Reads below a seam stay real and off the tape, since the machinery
there does not run at replay. A site with no recorded value left goes on from the last value that
was given (or from the first one of the tape) in real time, and counts as a miss; what a module
reads as it is loaded does not.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import accumulate, pairwise

from tracefork_core.determinism import wall
from tracefork_core.determinism.sightings import observers, sighted
from tracefork_core.determinism.sites import call_site, is_loading
from tracefork_core.determinism.whose import Open
from tracefork_core.exchange.known_sites import KnownSites
from tracefork_core.exchange.lane import current_lane, drawing_lane, draws_anew
from tracefork_core.tape.event import Reads
from tracefork_core.tape.timer import monotonic_ns

SOURCE = "clock"
_TICK_NS = 1_000
_NUMBER = re.compile(r"\.\d+(?=/|$)")
_THROUGH = frozenset({"freezegun.api", "time_machine", "uuid"})


class RecordedClock:
    """The clock of one session: real and written down, or read back; in a fork both."""

    def __init__(
        self, session: object, recorded: Iterable[Reads] | None = None, *, forked: bool = False
    ) -> None:
        self.session = session
        self.misses = 0
        self._replaying = recorded is not None
        self._forked = forked
        # Re-entrant: a finalizer that runs in the middle of a read may read the clock.
        self._lock = threading.RLock()
        self._fresh: deque[tuple[str, str, int]] = deque()
        self._given: dict[tuple[str, str], deque[int]] = defaultdict(deque)
        self._recorded: list[Reads] = []
        self._known = KnownSites()
        self._is_elsewhere = False
        self.give(recorded or ())
        self._last = min((values[0] for values in self._given.values() if values), default=None)
        self._given_at = monotonic_ns()

    def give(self, recorded: Iterable[Reads]) -> None:
        """Take in what was read when this was recorded."""
        for reads in recorded:
            if reads.source == SOURCE:
                self._recorded.append(reads)
                self._known.add(reads.site)
                self._given[reads.lane, reads.site].extend(accumulate(reads.values))

    def go_to(self, moment: int) -> None:
        """Go on with what was read from a moment of the recording on.

        Tasks and threads are numbered as they start, and from here on others start first: lanes
        that differ by numbers alone share what was read on them, in its order.
        """
        later: dict[tuple[str, str], list[int]] = defaultdict(list)
        for reads in self._recorded:
            values = (value for value in accumulate(reads.values) if value >= moment)
            later[_unnumbered(reads.lane), reads.site].extend(values)
        with self._lock:
            self._is_elsewhere = True
            self._given.clear()
            self._given.update({key: deque(sorted(values)) for key, values in later.items()})
            self._last = moment
            self._given_at = monotonic_ns()

    def read(self, site: str) -> int:
        """Return nanoseconds since the epoch for a read at this call site."""
        lane = drawing_lane(self.session)
        if not self._replaying:
            now = wall.real_ns()
            self._fresh.append((lane, site, now))  # One step: it needs no lock.
            return now
        site = self._known.named(site)
        with self._lock:
            given = _unnumbered(current_lane(self.session)) if self._is_elsewhere else lane
            if values := self._given.get((given, site)):
                self._last = values.popleft()
            elif self._forked and draws_anew(self.session):
                self._last = wall.real_ns()  # Drawn anew: as it is.
            else:
                # In real time: a wait for a moment to come must not need a million reads.
                self.misses += not is_loading()
                passed = max(monotonic_ns() - self._given_at, _TICK_NS)
                self._last = (self._last or wall.real_ns()) + passed
            self._given_at = monotonic_ns()
            if self._forked:
                self._fresh.append((lane, site, self._last))
            return self._last

    def fresh(self) -> list[Reads]:
        """Return what was read since this was asked last."""
        if not self._fresh:
            return []
        read: dict[tuple[str, str], list[int]] = defaultdict(list)
        for _ in range(len(self._fresh)):
            lane, site, now = self._fresh.popleft()
            read[lane, site].append(now)
        return [Reads(SOURCE, lane, site, _steps(v)) for (lane, site), v in read.items()]


class _Sessions(Open[RecordedClock]):
    """Hands each read to the clock of the session that runs there."""

    def time_ns(self) -> int:
        clock = self.here()
        if clock is None:
            return wall.real_ns()
        where, frame = call_site(1, _THROUGH)
        if where is None:
            return wall.real_ns()
        now = clock.read(where)
        if observers:
            sighted(SOURCE, now, frame)
        return now

    def _start(self) -> None: ...

    def _stop(self) -> None: ...


_sessions = _Sessions()
_lock = threading.Lock()
_taken = False
"""Whether the wall clock is ours. A forked child has it, and no session."""


def start(clock: RecordedClock) -> None:
    """Let the wall clock of this process be answered by `clock` inside its session."""
    global _taken
    with _lock:
        if not _taken:
            wall.take(_sessions)
            _taken = True
        _sessions.all.append(clock)


def stop(clock: RecordedClock) -> None:
    """Undo `start`."""
    global _taken
    with _lock:
        _sessions.all.remove(clock)
        if not _sessions.all:
            wall.give_back(_sessions)
            _taken = False


def _unnumbered(lane: str) -> str:
    return _NUMBER.sub("", lane)


def _steps(values: list[int]) -> list[int]:
    """Spell values as the first and the differences: small numbers make small tapes."""
    return [values[0], *(b - a for a, b in pairwise(values))]
