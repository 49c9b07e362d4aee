"""The agent's own waiting: it ends in its turn, as an answer comes in its turn.

A recording sleeps as it is asked to, and gives the end of each sleep a turn among the deliveries. A
replay does not sleep: the end comes when its turn has come. A sleep that was cut short lasts until
it is again, and one that was not recorded takes its time; once a replay has left its tape, it ends
with that, or an agent would wait for ever for a thread that the divergence has stopped.

The alarm of a process (`signal.setitimer`) runs as it is; a sleep in which it goes off takes its
time.

A timer (of a `wait_for`, say) runs as it is, at replay too. What it sets off is a delivery: it has
a turn, and what was delivered after it is held back until the timer has fired again. So does a
program that is waited for, which fires when it ends.

Sleeps and timers are told apart by lane and call site, in the order in which they begin.
"""

from __future__ import annotations

import signal
import threading
import time
from asyncio import sleep as real_asleep
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property

from tracefork_core.exchange.contract import PROGRAM, TIMER, WAIT, Session
from tracefork_core.exchange.lane import MAIN, UNORDERED, current_lane
from tracefork_core.exchange.recorded_sites import KnownSites
from tracefork_core.order.pace import Pace
from tracefork_core.order.quiet import Gate
from tracefork_core.order.turns import owner_of
from tracefork_core.order.turnstile import STALL_SECONDS, StallError, Turnstile
from tracefork_core.tape import Tape, TapeWriter
from tracefork_core.tape.event import DRAWS, Draws, Reads

Key = tuple[str, str]
"""A lane and a call site."""
Ending = list[int]
"""The turn in which a sleep was over; nothing while it lasts."""
SLEEP = "sleep"
CUT_SHORT = -1
"""Stands for the turn of a sleep that was cancelled."""
AT_ONCE = -2
"""Stands for the turn of a timer whose time was up when it began, less the turns that were taken by
then: it fired at once, and nobody waits for it."""
real_sleep = time.sleep
_FOR_GOOD = 3600.0
_LOOK_SECONDS = 0.01
_MORE_LOOKS = 200


class RecordedWaits:
    """Sleeps for real, and writes down in which turn each sleep was over."""

    def __init__(self, session: Session, gate: Gate, next_turn: Callable[[], int]) -> None:
        self._session = session
        self._gate = gate
        self.next_turn = next_turn
        self._slept: dict[Key, deque[Ending]] = defaultdict(deque)
        self._begun: dict[Key, int] = defaultdict(int)
        self._fired: dict[tuple[str, Key], list[int]] = defaultdict(list)
        self._lock = threading.Lock()

    def sleep(self, seconds: float, site: str) -> None:
        self._session.check()
        ending = self.begin(site)
        try:
            real_sleep(seconds)
            self._gate.pass_on(object())
        except BaseException:
            ending.append(CUT_SHORT)
            raise
        ending.append(self.next_turn())

    async def asleep(
        self, seconds: float, site: str, still: Callable[[], bool] | None = None
    ) -> None:
        """Sleep, for longer where it is `still` to be cut short."""
        self._session.check()
        ending = self.begin(site)
        try:
            await real_asleep(seconds)
            while still is not None and still():  # noqa: ASYNC110 - a timer tells nobody
                await real_asleep(_LOOK_SECONDS)
            await self._gate.apass_on(object())
        except BaseException:
            ending.append(CUT_SHORT)
            raise
        ending.append(self.next_turn())

    def timer(self, site: str, source: str) -> RecordedTimer:
        with self._lock:
            key = current_lane(self._session), site
            number = self._begun[key] = self._begun[key] + 1
        return RecordedTimer(self, self._gate, source, key, number)

    def note_firing(self, source: str, key: Key, number: int, turn: int | None = None) -> None:
        """Give the firing of a timer a turn: the next, unless it has one."""
        turn = self.next_turn() if turn is None else turn
        with self._lock:
            self._fired[source, key] += [number, turn]

    def flush(self, sink: TapeWriter) -> None:
        """Put the sleeps that ended since the last time on the tape, as they began.

        What began after one that lasts waits for its end, or for that of the session.
        """
        if not (self._slept or self._fired):
            return
        with self._lock:
            fired, self._fired = self._fired, defaultdict(list)
            slept = [(key, self._ended(endings)) for key, endings in self._slept.items()]
            for key in [key for key, endings in self._slept.items() if not endings]:
                del self._slept[key]
        reads = [Reads(SLEEP, *key, turns) for key, turns in slept if turns]
        reads += [Reads(source, *key, firings) for (source, key), firings in fired.items()]
        if reads:
            sink.note(DRAWS, aside=Draws(reads))

    def begin(self, site: str) -> Ending:
        """Write down that a sleep began; in which turn it is over, its ending is told."""
        ending: Ending = []
        with self._lock:
            self._slept[current_lane(self._session), site].append(ending)
        return ending

    def _ended(self, endings: deque[Ending]) -> list[int]:
        """Take out what is over, and what began before that."""
        turns = []
        while endings and (endings[0] or (not self._session.active and any(endings))):
            turns.append(next(iter(endings.popleft()), CUT_SHORT))
        return turns


class RecordedTimer:
    """A timer of the agent's, the `number`th of its lane and site."""

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
            self.note(AT_ONCE - self._waits.next_turn())
        return now

    def begin(self, is_pending: Callable[[], bool]) -> None: ...

    def fire(self) -> None:
        self._gate.pass_on(self)
        self.note()

    async def afire(self) -> None:
        await self._gate.apass_on(self)
        self.note()

    def note(self, turn: int | None = None) -> None:
        """Write down in which turn it fired: the next, unless that is known."""
        self._waits.note_firing(self._source, self._key, self._number, turn)


class ReplayedWaits:
    """Lets each sleep end in its recorded turn."""

    def __init__(
        self, session: Session, recorded: Iterable[Reads], turnstile: Turnstile, pace: Pace
    ) -> None:
        self._session = session
        self._turnstile = turnstile
        self._pace = pace
        self._turns: dict[Key, deque[int]] = defaultdict(deque)
        self._begun: dict[Key, int] = defaultdict(int)
        self._firings: dict[tuple[Key, int], int] = {}
        self._known = KnownSites()
        for reads in recorded:
            key = reads.lane, reads.site
            self._known.add(reads.site)
            if reads.source == SLEEP:
                self._turns[key].extend(reads.values)
            else:
                self._firings |= {(key, number): turn for number, turn in pairs(reads)}

    def sleep(self, seconds: float, site: str) -> None:
        turn = self.next(site)
        if turn is None or turn == CUT_SHORT:
            self._session.check()
            real_sleep(seconds)
        else:
            self.sleep_until(turn, seconds)

    async def asleep(self, seconds: float, site: str) -> None:
        turn = self.next(site)
        if turn is None:
            self._session.check()
            await real_asleep(seconds)
        else:
            await self.asleep_until(turn, seconds)

    def sleep_until(self, turn: int, seconds: float) -> None:
        """Return when it is the turn of a sleep to be over."""
        if (stretched := max(self._pace.stretched(seconds), _through_alarm(seconds))) > 0:
            self._turnstile.come_for(turn)
            real_sleep(stretched)
        self._turnstile.wait(turn, owner_of(turn), seconds)

    async def asleep_until(self, turn: int, seconds: float) -> None:
        """Return when it is the turn of a sleep to be over; one that was cut short has none."""
        if turn == CUT_SHORT:
            await real_asleep(_FOR_GOOD)
            return
        try:
            if (stretched := max(self._pace.stretched(seconds), _through_alarm(seconds))) > 0:
                self._turnstile.come_for(turn)
                await real_asleep(stretched)
            with suppress(StallError):
                await self._turnstile.await_turn(turn, owner_of(turn), seconds)
        except BaseException:
            self._turnstile.give_up((turn,))
            raise

    def timer(self, site: str, source: str) -> ReplayedTimer:
        key = current_lane(self._session), self._known.named(site)
        number = self._begun[key] = self._begun[key] + 1
        is_program = source == PROGRAM
        # Nothing cuts short the wait of a thread for a program, unless its own limit does.
        asks = not is_program and key[0] in self._asking
        # An exporter in the background looks for work like that: it is not to be told.
        check = self._session.check if key[0] == MAIN else None
        turn = self._firings.get((key, number))
        timer = ReplayedTimer(self._turnstile, turn, asks=asks, check=check)
        timer.most_seconds = self._lasted + STALL_SECONDS if is_program else None
        return timer

    @cached_property
    def _lasted(self) -> float:
        """For how many seconds the recording asked for things."""
        tape = self._session.source
        asked = [one.aside for one in tape.exchanges] if tape else []
        ended = max((aside.started + (aside.took or 0) for aside in asked), default=0)
        return (ended - min((aside.started for aside in asked), default=0)) / 1e9

    @cached_property
    def _asking(self) -> set[str]:
        tape = self._session.source
        return _asking_lanes(tape) if tape else set()

    def next(self, site: str) -> int | None:
        """Return the turn of the next sleep of this site on this lane; None where none is known."""
        lane = current_lane(self._session)
        site = self._known.named(site)
        turns = self._turns.get((lane, site)) if lane != UNORDERED else None
        return turns.popleft() if turns else None


class ReplayedTimer:
    """A timer of the agent's; `turn` is when it fired, None where it did not.

    One that was stopped in time when this was recorded gives what stopped it some more; a thread's,
    where its lane `asks` for something. Before that `check` says so if the tape was left. After
    `most_seconds` nobody is held back for it any more: a program may wait for what only happens
    while recording.
    """

    most_seconds: float | None = None

    def __init__(
        self,
        turnstile: Turnstile,
        turn: int | None,
        *,
        asks: bool,
        check: Callable[[], None] | None,
    ) -> None:
        self._turnstile = turnstile
        self.turn = turn
        self._asks = asks
        self._check = check
        self._is_pending = _is_over

    def is_over(self, *, now: bool) -> bool:
        return now if self.turn is None else self.turn <= AT_ONCE

    def begin(self, is_pending: Callable[[], bool]) -> None:
        if (seconds := self.most_seconds) is not None:
            until = time.monotonic() + seconds
            self._is_pending = lambda: is_pending() and time.monotonic() < until
        else:
            self._is_pending = is_pending
        if self.turn is not None:
            self._turnstile.expect(self.turn, self._is_pending)

    def fire(self) -> None:
        if self.turn is not None:
            self._turnstile.wait(self.turn, owner_of(self.turn), 0.0)
            return
        if self._check is not None:
            self._check()
        for _ in range(_MORE_LOOKS if self._asks else 0):
            if not self._is_pending():
                return
            real_sleep(_LOOK_SECONDS)

    async def afire(self) -> None:
        if self.turn is not None:
            with suppress(StallError):
                await self._turnstile.await_turn(self.turn, owner_of(self.turn), 0.0)
            return
        for _ in range(_MORE_LOOKS):
            if not self._is_pending():
                return
            await real_asleep(_LOOK_SECONDS)


def _through_alarm(seconds: float) -> float:
    """Return how long a sleep lasts at replay: as long as ever, where an alarm goes off in it.

    The system's alarm runs at replay as well, and its handler has to find what it found.
    """
    return seconds if 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= seconds else 0.0


def _is_over() -> bool:
    return False


def recorded_waits(tape: Tape) -> list[Reads]:
    """Return the sleeps and the fired timers that a tape knows of.

    Waits of threads whose lanes ask for nothing are left out: an exporter in the background looks
    for work every few seconds, and to wait for each would make a replay as long as its recording.
    """
    asking = _asking_lanes(tape)
    return [
        reads
        for reads in tape.chance.reads
        if reads.source in (SLEEP, TIMER, PROGRAM)
        or (reads.source == WAIT and reads.lane in asking)
    ]


def _asking_lanes(tape: Tape) -> set[str]:
    """Return the lanes that ask for something, and those that started them."""
    asking = {exchange.lane for exchange in tape.exchanges}
    return asking | {lane[:end] for lane in asking for end in range(len(lane)) if lane[end] == "/"}


def turns_of_waits(recorded: Iterable[Reads]) -> Iterator[tuple[int, int]]:
    """Yield the turns of sleeps and timers, each with its owner."""
    for reads in recorded:
        turns = reads.values if reads.source == SLEEP else [turn for _, turn in pairs(reads)]
        for turn in turns:
            if turn >= 0:
                yield turn, owner_of(turn)


def pairs(reads: Reads) -> Iterator[tuple[int, int]]:
    """Yield the number of each timer that fired, and the turn in which it did."""
    return zip(reads.values[::2], reads.values[1::2], strict=False)
