"""Record reads of the wall clock, and answer them from the tape at replay.

Reads are kept per lane and call site. One sequence per lane would break as soon as a library reads
the clock once more at replay. Reads below a seam stay real and off the tape: the code there does
not run at replay.

A site with no recorded value left continues from the last value that was returned (or from the
first one on the tape) in real time, and counts as a miss. Two kinds of reads count as no miss:
those of a module while it is loaded, and those of a library that builds a response from a tape,
which it did below the seam in the recording.
"""

from __future__ import annotations

import re
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import accumulate, pairwise
from threading import get_ident
from types import FrameType

from tracefork_core.chance import system_clock
from tracefork_core.chance.draws import PerSession, observers, report_draw
from tracefork_core.exchange.call_sites import KnownSites, call_site, is_loading
from tracefork_core.exchange.contract import Session
from tracefork_core.exchange.current import (
    is_crossing_seam,
    is_rebuilding,
    lane_of_context,
    running_task,
)
from tracefork_core.exchange.generators import frames
from tracefork_core.exchange.lane import current_lane, drawing_lane, draws_new_values
from tracefork_core.patching.patch import Patches, Shared
from tracefork_core.patching.real_clock import monotonic_ns
from tracefork_core.tape.event import Reads

SOURCE = "clock"
_TICK_NS = 1_000
_NUMBER = re.compile(r"\.\d+(?=/|$)")
_THROUGH = frozenset({"freezegun.api", "time_machine", "uuid", "uuid_utils.compat"})


class RecordedClock:
    """The clock of one session: real and recorded, or answered from the tape; in a fork both.

    Attributes:
        is_plain: whether a read only records the real time.
        misses: how many reads the tape had no value for.
    """

    def __init__(
        self, session: Session, recorded: Iterable[Reads] | None = None, *, forked: bool = False
    ) -> None:
        self.session = session
        self.misses = 0
        self.is_plain = recorded is None
        self._forked = forked
        # Re-entrant: a finalizer that runs in the middle of a read may read the clock.
        self._lock = threading.RLock()
        self._fresh: deque[tuple[str, str, int]] = deque()
        self.note = self._fresh.append
        """Takes (lane, site, now). An atomic append: it needs no lock."""
        self._given: dict[tuple[str, str], deque[int]] = defaultdict(deque)
        self._recorded: list[Reads] = []
        self._known = KnownSites()
        self._is_elsewhere = False
        self.give(recorded or ())
        self._last = min((values[0] for values in self._given.values() if values), default=None)
        self._given_at = monotonic_ns()

    def give(self, recorded: Iterable[Reads]) -> None:
        """Add recorded reads, to answer from."""
        for reads in recorded:
            if reads.source == SOURCE:
                self._recorded.append(reads)
                self._known.add(reads.site)
                self._given[reads.lane, reads.site].extend(accumulate(reads.values))

    def go_to(self, moment: int) -> None:
        """Continue with the reads from a `moment` of the recording on (nanoseconds).

        Tasks and threads are numbered as they start, and after a jump they start in another order.
        So lanes whose names differ only by numbers share their recorded reads, in order of time.
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
        if self.is_plain:
            now = system_clock.real_ns()
            self.note((lane, site, now))
            return now
        site, below = self._known.named(site), is_rebuilding()
        with self._lock:
            given = _unnumbered(current_lane(self.session)) if self._is_elsewhere else lane
            if not below and (values := self._given.get((given, site))):
                self._last = values.popleft()
            elif self._forked and draws_new_values(self.session):
                self._last = system_clock.real_ns()
            else:
                # In real time: a loop that waits for a deadline must not need a million reads.
                self.misses += not (below or is_loading())
                passed = max(monotonic_ns() - self._given_at, _TICK_NS)
                self._last = (self._last or system_clock.real_ns()) + passed
            self._given_at = monotonic_ns()
            if self._forked and not below:
                self.note((lane, site, self._last))
            return self._last

    def fresh(self) -> list[Reads]:
        """Return the reads since the last call."""
        if not self._fresh:
            return []
        read: dict[tuple[str, str], list[int]] = defaultdict(list)
        for _ in range(len(self._fresh)):
            lane, site, now = self._fresh.popleft()
            read[lane, site].append(now)
        return [Reads(SOURCE, lane, site, _steps(v)) for (lane, site), v in read.items()]


class _Sessions(PerSession[RecordedClock]):
    """Passes each read of the process to the clock of the session that it belongs to."""

    def __init__(self) -> None:
        super().__init__()
        self._readers: set[str] = set()
        """Call sites that read the clock directly, not through a library."""

    def time_ns(self) -> int:
        """Return nanoseconds since the epoch; time-machine calls this.

        Nearly all reads are made while recording, in a lane's own thread or task, by a function
        that has read the clock before. These are recorded right here: each further call would cost
        a tenth of a microsecond.
        """
        lane = lane_of_context()
        if lane is not None and not (is_crossing_seam() or observers or frames):
            events = sys.modules.get("asyncio.events")
            on_loop = events is not None and events._get_running_loop() is not None  # noqa: SLF001 - in `__all__`
            if (id(running_task()) if on_loop else get_ident()) in lane.owners:
                frame = sys._getframe(1)
                site = f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}"
                if site in self._readers:
                    clock = self.of(lane.session)
                    if clock is not None and clock.is_plain:
                        now = system_clock.real_ns()
                        clock.note((lane.name, site, now))
                        return now
        return self._time_ns(sys._getframe(1))

    def _time_ns(self, direct: FrameType) -> int:
        clock = self.here()
        if clock is None:
            return system_clock.real_ns()
        where, frame = call_site(2, _THROUGH)
        if where is None:
            return system_clock.real_ns()
        if frame is direct and where.endswith(f":{frame.f_code.co_qualname}"):
            self._readers.add(where)
        now = clock.read(where)
        if observers:
            report_draw(SOURCE, now, frame)
        return now

    def _start(self) -> None: ...

    def _stop(self) -> None: ...


_sessions = _Sessions()


def start(clock: RecordedClock) -> None:
    """Answer reads of the process's wall clock from `clock`, in the code of its session."""
    _patches.on()
    _sessions.add(clock)


def stop(clock: RecordedClock) -> None:
    """Undo `start`."""
    _sessions.remove(clock)
    _patches.off()


def _put_in(patches: Patches) -> None:
    patches.switch(lambda: system_clock.take(_sessions), lambda: system_clock.give_back(_sessions))


_patches = Shared(_put_in)


def _unnumbered(lane: str) -> str:
    return _NUMBER.sub("", lane)


def _steps(values: list[int]) -> list[int]:
    """Return the first value and the differences: small numbers make small tapes."""
    return [values[0], *(b - a for a, b in pairwise(values))]
