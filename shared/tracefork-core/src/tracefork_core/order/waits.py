"""The agent's own waiting: the end of a sleep or timer has a turn, like a response.

A recording really sleeps, and gives the end of each sleep a turn among the deliveries. A replay
does not sleep: a sleep ends when its turn is due. A sleep that was cut short lasts until it is cut
short again, and one that is not on the tape takes its time. After a divergence such a sleep fails;
else an agent would wait forever for a thread that stopped at the divergence.

The alarm of a process (`signal.setitimer`) runs in real time. A sleep in which it goes off takes
its time at replay too, because the signal handler must interrupt it in the same place.

A timer (of a `wait_for`, say) runs in real time, at replay too. Its effect is a delivery with a
turn: later deliveries are held back until the timer has fired again. The wait for a subprocess
counts as a timer that fires when the subprocess ends.

Sleeps and timers are identified by lane, call site, and the order in which they begin.
"""

from __future__ import annotations

import signal
import threading
from asyncio import sleep as real_asleep
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property

from tracefork_core.exchange.call_sites import KnownSites
from tracefork_core.exchange.contract import PROGRAM, Session
from tracefork_core.exchange.lane import MAIN, UNORDERED, current_lane
from tracefork_core.order.endings import CUT_SHORT, SLEEP, Ending, asking_lanes, endings_of
from tracefork_core.order.pace import Pace
from tracefork_core.order.quiet import Gate
from tracefork_core.order.turns import soft_owner
from tracefork_core.order.turnstile import STALL_SECONDS, StallError, Turnstile
from tracefork_core.patching.real_clock import real_time
from tracefork_core.tape import TapeWriter
from tracefork_core.tape.event import DRAWS, Draws, Reads

Key = tuple[str, str]
"""A lane and a call site."""
real_sleep = real_time.sleep
_FOR_GOOD = 3600.0
_LOOK_SECONDS = 0.01
_MORE_LOOKS = 200
"""How often to look whether what stopped a timer in the recording stops it again."""


class Sleep:
    """A sleep of the agent; `ending` is None while it lasts."""

    def __init__(self) -> None:
        self.ending: Ending | None = None


class RecordedWaits:
    """Sleeps for real, and records in which turn each sleep and timer ended."""

    def __init__(self, session: Session, gate: Gate, next_turn: Callable[[], int]) -> None:
        self._session = session
        self._gate = gate
        self.next_turn = next_turn
        self._sleeps: dict[Key, deque[Sleep]] = defaultdict(deque)
        self._begun: dict[Key, int] = defaultdict(int)
        self._fired: dict[tuple[str, Key], list[int]] = defaultdict(list)
        self._lock = threading.Lock()

    def sleep(self, seconds: float, site: str) -> None:
        self._session.check()
        sleep = self.begin(site)
        try:
            real_sleep(seconds)
            self._gate.pass_on(object())
        except BaseException:
            sleep.ending = CUT_SHORT
            raise
        sleep.ending = Ending(self.next_turn())

    async def asleep(
        self, seconds: float, site: str, still: Callable[[], bool] | None = None
    ) -> None:
        """Sleep, and go on while `still` returns True: something will cut the sleep short."""
        self._session.check()
        sleep = self.begin(site)
        try:
            await real_asleep(seconds)
            while still is not None and still():  # noqa: ASYNC110 - no event tells of a timer
                await real_asleep(_LOOK_SECONDS)
            await self._gate.apass_on(object())
        except BaseException:
            sleep.ending = CUT_SHORT
            raise
        sleep.ending = Ending(self.next_turn())

    def timer(self, site: str, source: str) -> RecordedTimer:
        with self._lock:
            key = current_lane(self._session), site
            number = self._begun[key] = self._begun[key] + 1
        return RecordedTimer(self, self._gate, source, key, number)

    def note_firing(self, source: str, key: Key, number: int, ending: Ending) -> None:
        with self._lock:
            self._fired[source, key] += [number, ending.written]

    def flush(self, sink: TapeWriter) -> None:
        """Write the endings since the last call to the tape, sleeps in the order they began.

        A sleep that began after an unfinished one is written together with that one, or when the
        session ends.
        """
        if not (self._sleeps or self._fired):
            return
        with self._lock:
            fired, self._fired = self._fired, defaultdict(list)
            ended = [(key, self._ended(sleeps)) for key, sleeps in self._sleeps.items()]
            for key in [key for key, sleeps in self._sleeps.items() if not sleeps]:
                del self._sleeps[key]
        reads = [Reads(SLEEP, *key, values) for key, values in ended if values]
        reads += [Reads(source, *key, firings) for (source, key), firings in fired.items()]
        if reads:
            sink.note(DRAWS, aside=Draws(reads))

    def begin(self, site: str) -> Sleep:
        """Note that a sleep of this lane began. The caller sets its ending."""
        sleep = Sleep()
        with self._lock:
            self._sleeps[current_lane(self._session), site].append(sleep)
        return sleep

    def _ended(self, sleeps: deque[Sleep]) -> list[int]:
        """Take out the sleeps that are over and that no earlier one holds back."""
        values = []
        while sleeps and (
            sleeps[0].ending or (not self._session.active and any(one.ending for one in sleeps))
        ):
            values.append((sleeps.popleft().ending or CUT_SHORT).written)
        return values


class RecordedTimer:
    """A timer of the agent, the `number`th of its lane and site."""

    def __init__(
        self, waits: RecordedWaits, gate: Gate, source: str, key: Key, number: int
    ) -> None:
        self._waits = waits
        self._gate = gate
        self._source = source
        self._key = key
        self._number = number

    def is_over(self, *, now: bool) -> bool:
        if now:
            self.note(Ending(self._waits.next_turn(), is_at_once=True))
        return now

    def begin(self, is_pending: Callable[[], bool]) -> None: ...

    def fire(self) -> None:
        self._gate.pass_on(self)
        self.note(Ending(self._waits.next_turn()))

    async def afire(self) -> None:
        await self._gate.apass_on(self)
        self.note(Ending(self._waits.next_turn()))

    def note(self, ending: Ending) -> None:
        self._waits.note_firing(self._source, self._key, self._number, ending)


class ReplayedWaits:
    """Lets each sleep end in its recorded turn."""

    def __init__(
        self, session: Session, recorded: Iterable[Reads], turnstile: Turnstile, pace: Pace
    ) -> None:
        self._session = session
        self._turnstile = turnstile
        self._pace = pace
        self._sleeps: dict[Key, deque[Ending]] = defaultdict(deque)
        self._begun: dict[Key, int] = defaultdict(int)
        self._firings: dict[tuple[Key, int], Ending] = {}
        self._known = KnownSites()
        for reads in recorded:
            key = reads.lane, reads.site
            self._known.add(reads.site)
            for number, ending in endings_of(reads):
                if reads.source == SLEEP:
                    self._sleeps[key].append(ending)
                else:
                    self._firings[key, number] = ending

    def sleep(self, seconds: float, site: str) -> None:
        ending = self.next(site)
        if ending is None or ending.turn is None:
            self._session.check()
            real_sleep(seconds)
        else:
            self.sleep_until(ending.turn, seconds)

    async def asleep(self, seconds: float, site: str) -> None:
        ending = self.next(site)
        if ending is None:
            self._session.check()
            await real_asleep(seconds)
        elif ending.turn is None:
            await real_asleep(_FOR_GOOD)
        else:
            await self.asleep_until(ending.turn, seconds)

    def sleep_until(self, turn: int, seconds: float) -> None:
        """Block this thread until the turn of a sleep's end."""
        if (stretched := max(self._pace.stretched(seconds), _through_alarm(seconds))) > 0:
            self._turnstile.come_for(turn)
            real_sleep(stretched)
        self._turnstile.wait(turn, soft_owner(turn), seconds)

    async def asleep_until(self, turn: int, seconds: float) -> None:
        """Wait on the event loop until the turn of a sleep's end."""
        try:
            if (stretched := max(self._pace.stretched(seconds), _through_alarm(seconds))) > 0:
                self._turnstile.come_for(turn)
                await real_asleep(stretched)
            with suppress(StallError):
                await self._turnstile.await_turn(turn, soft_owner(turn), seconds)
        except BaseException:
            self._turnstile.give_up((turn,))
            raise

    def timer(self, site: str, source: str) -> ReplayedTimer:
        key = current_lane(self._session), self._known.named(site)
        number = self._begun[key] = self._begun[key] + 1
        is_program = source == PROGRAM
        # Only its own timeout cuts short a thread's wait for a subprocess.
        asks = not is_program and key[0] in self._asking
        # A background exporter polls like that; its timers have no turns.
        check = self._session.check if key[0] == MAIN else None
        ending = self._firings.get((key, number))
        timer = ReplayedTimer(self._turnstile, ending, asks=asks, check=check)
        timer.most_seconds = self._lasted + STALL_SECONDS if is_program else None
        return timer

    @cached_property
    def _lasted(self) -> float:
        """For how many seconds the recording made requests."""
        tape = self._session.source
        asked = [one.aside for one in tape.exchanges] if tape else []
        ended = max((aside.started + (aside.took or 0) for aside in asked), default=0)
        return (ended - min((aside.started for aside in asked), default=0)) / 1e9

    @cached_property
    def _asking(self) -> set[str]:
        tape = self._session.source
        return asking_lanes(tape) if tape else set()

    def next(self, site: str) -> Ending | None:
        """Take the ending of the next sleep of this site on this lane; None if none is left."""
        lane = current_lane(self._session)
        site = self._known.named(site)
        endings = self._sleeps.get((lane, site)) if lane != UNORDERED else None
        return endings.popleft() if endings else None


class ReplayedTimer:
    """A timer of the agent.

    A timer that was stopped in the recording waits longer at replay, so that it can be stopped
    again. A thread's timer does so only if its lane `asks` (makes requests).

    Attributes:
        ending: How it fired in the recording; None if it did not.
        most_seconds: How long deliveries are held back for it. A subprocess may wait for something
            that only happens while recording.
    """

    most_seconds: float | None = None

    def __init__(
        self,
        turnstile: Turnstile,
        ending: Ending | None,
        *,
        asks: bool,
        check: Callable[[], None] | None,
    ) -> None:
        self._turnstile = turnstile
        self.ending = ending
        self._asks = asks
        self._check = check
        self._is_pending = _is_over

    def is_over(self, *, now: bool) -> bool:
        return now if self.ending is None else self.ending.is_at_once

    def begin(self, is_pending: Callable[[], bool]) -> None:
        if (seconds := self.most_seconds) is not None:
            until = real_time.monotonic() + seconds
            self._is_pending = lambda: is_pending() and real_time.monotonic() < until
        else:
            self._is_pending = is_pending
        if (turn := self._turn) is not None:
            self._turnstile.expect(turn, self._is_pending)

    def fire(self) -> None:
        if (turn := self._turn) is not None:
            self._turnstile.wait(turn, soft_owner(turn), 0.0)
            return
        if self._check is not None:
            self._check()
        for _ in range(_MORE_LOOKS if self._asks else 0):
            if not self._is_pending():
                return
            real_sleep(_LOOK_SECONDS)

    async def afire(self) -> None:
        if (turn := self._turn) is not None:
            with suppress(StallError):
                await self._turnstile.await_turn(turn, soft_owner(turn), 0.0)
            return
        for _ in range(_MORE_LOOKS):
            if not self._is_pending():
                return
            await real_asleep(_LOOK_SECONDS)

    @property
    def _turn(self) -> int | None:
        return None if self.ending is None or self.ending.is_at_once else self.ending.turn


def _through_alarm(seconds: float) -> float:
    """Return how long a sleep has to last at replay: its time if an alarm goes off in it, or 0."""
    return seconds if 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= seconds else 0.0


def _is_over() -> bool:
    return False
