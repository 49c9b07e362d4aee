"""Make threads and tasks wait for their turn, and tell when waiting longer cannot help.

Completion order is part of a program's meaning: joins append in arrival order, and the next prompt
shows it. So at replay a delivery waits until its turn is due (see `turns`; `policies` say which is
next). A delivery to another exchange than the last one also waits until the loop is quiet and the
other threads are at rest, so that the effects of the last delivery are done.

Nothing waits for ever, since the due turn may never be asked for:

- On an event loop without other threads everything that can ask does ask. A turn that nothing asks
  for is a divergence, reported after `STALL_SECONDS`.
- A thread may be kept from asking. A lock may be held by another thread than in the recording, or
  all threads of a pool may hold jobs whose turn has not come while the job whose turn is due is
  queued behind them. In what order threads submit jobs or take locks is a race of the program that
  no tape holds. Then the first that waits goes ahead, out of order, and its overtaken turns are
  counted (`skipped`). Exchanges are matched by lane and content, so their answers stay the same.
  `overtaking` says when.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import sleep as real_asleep
from asyncio import wait as wait_for_any
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from time import sleep as real_sleep
from typing import NamedTuple

from tracefork_core.exchange.current import loop_is_running
from tracefork_core.order.overtaking import Overtaking
from tracefork_core.order.pace import Pace
from tracefork_core.order.policies import Policy
from tracefork_core.order.quiet import Gate, has_nothing_to_do, until_quiet
from tracefork_core.order.thread_rest import LIMIT_SECONDS
from tracefork_core.patching.real_clock import monotonic_ns

STALL_SECONDS = 30.0
"""How much longer than in the recording a task waits before the replay is given up."""
GRACE_SECONDS = 2.0
"""How much longer than in the recording a thread waits before it goes ahead."""
_LOOK_SECONDS = 0.01
_TIMER_SECONDS = 0.002
"""How often the first that waits looks whether a timer has fired."""
_WATCH_SECONDS = 0.004, 0.25
"""How soon a watcher looks whether the run is stuck, and how seldom at last: a look costs about as
much as a delivery, and a thread that computes for long is not to be disturbed by it."""


class StallError(Exception):
    """Nothing was delivered for `.seconds`; `.owner` is the exchange that all others wait for."""

    def __init__(self, owner: int, seconds: float) -> None:
        self.owner = owner
        self.seconds = seconds
        super().__init__(f"exchange {owner} did not take its turn for {seconds:.1f} s")


class _Is(Enum):
    DUE = auto()
    LATER = auto()
    UNDECIDED = auto()
    """Later, and only quiet can tell which turn is next."""


class _Look(NamedTuple):
    """What a thread or task sees that waits for a turn.

    `hold` is how many seconds to let pass before the next look, for the pace or for a timer;
    `position` is where the line is.
    """

    turn: _Is
    hold: float
    position: int


class Turnstile:
    """Where threads and tasks wait for their turns. Safe to use from any thread."""

    def __init__(self, policy: Policy, gate: Gate, pace: Pace) -> None:
        self._policy = policy
        self._line = policy.line
        self._gate = gate
        self._rest = gate.rest
        self._pace = pace
        self._last_moment = 0
        self._overtaking = Overtaking(policy, gate.rest)
        self._ends: dict[object, Callable[[], object]] = {}

    @property
    def skipped(self) -> int:
        """How many turns of exchanges were overtaken."""
        return self._line.skipped

    @property
    def is_reordered(self) -> bool:
        """Whether deliveries come in another order than the recorded one, on request."""
        return not self._policy.keeps_order

    @property
    def completed(self) -> list[int]:
        """The exchanges in the order of their last deliveries; empty in the recorded order."""
        return [owner for owner in self._policy.completed if owner >= 0]

    def last_turn(self, owner: int) -> int:
        """Return a new turn after all others, to wait until they were taken."""
        with self._line.held:
            return self._line.add_last(owner)

    def come_for(self, turn: int) -> None:
        """Keep a soft turn from being passed: something will soon wait for it."""
        with self._line.held:
            self._line.come(turn)

    def expect(self, turn: int, is_pending: Callable[[], bool]) -> None:
        """Hold back what comes after a soft turn while the timer that will take it `is_pending`."""
        with self._line.held:
            self._line.come(turn, is_pending)

    def expects_timers(self) -> bool:
        """Return whether a timer has yet to take its turn."""
        with self._line.held:
            self._line.pass_stopped_timers()
            return self._line.timers > 0

    def give_up(self, turns: Iterable[int]) -> None:
        """Stop waiting for these turns. Safe to call from the garbage collector."""
        self._line.give_up(turns)

    def break_open(self) -> None:
        """Let everything through: the replay is over or has failed, order means nothing now."""
        with self._line.held:
            self._policy.end()
            self._line.is_open = True
            self._line.wake_all()
            ends, self._ends = self._ends, {}
        for wake in ends.values():
            wake()

    def wait(self, turn: int, owner: int, patience: float, moment: int = 0) -> None:
        """Block this thread until `turn` is due, or it may go ahead, and take it.

        Args:
            turn: The turn, as recorded.
            owner: The exchange, or the owner of a soft turn.
            patience: How many seconds the recording waited.
            moment: When it was delivered in the recording, in nanoseconds; 0 if not known.
        """
        with self._line.held:
            if (self._follows(owner) or self._rest.alone) and self._takes(turn, owner, moment):
                return None
        at_rest = False
        try:
            while True:
                with self._line.held:
                    look = self._look(turn, owner, moment)
                    is_due = look.turn is _Is.DUE
                    rests = at_rest or self._follows(owner) or self._rest.alone
                    if is_due and look.hold == 0 and rests:
                        return self._take(turn, owner, moment)
                    if not is_due and loop_is_running():
                        # To block an event loop would stop the tasks that this waits for.
                        self._line.skipped += owner >= 0
                        return self._take(turn, owner, moment)
                    woken = threading.Event()
                    if not is_due:
                        self._line.here[turn].wake = woken.set
                if look.hold:
                    with self._overtaking.held_back():
                        real_sleep(look.hold)
                    at_rest = False
                elif is_due:
                    self._gate.pass_on(owner, self._limit(moment))
                    at_rest = True
                elif look.turn is _Is.UNDECIDED:
                    self._rest.wait()
                    self._rest.wait()  # Once more: a thread may be between two sleeps.
                    self._decide(look.position)
                else:
                    self._block(turn, woken, look.position, patience + GRACE_SECONDS)
        except BaseException:
            self._leave(turn)
            raise

    async def await_turn(self, turn: int, owner: int, patience: float, moment: int = 0) -> None:
        """Wait on the event loop until `turn` is due and the loop is quiet, and take it.

        Takes the arguments of `wait`.

        Raises:
            StallError: Nothing was delivered for `patience` and `STALL_SECONDS`.
        """
        with self._line.held:
            if self._follows(owner) and self._takes(turn, owner, moment):
                return None
        is_quiet = False
        try:
            while True:
                with self._line.held:
                    look = self._look(turn, owner, moment)
                    is_due = look.turn is _Is.DUE
                    if is_due and look.hold == 0 and (is_quiet or self._follows(owner)):
                        return self._take(turn, owner, moment)
                    woken = None
                    if not is_due:
                        woken, self._line.here[turn].wake = _sleeper()
                if look.hold:
                    with self._overtaking.held_back():
                        await real_asleep(look.hold)
                    is_quiet = False
                elif woken is None:
                    await self._gate.apass_on(owner, self._limit(moment))
                    is_quiet = True
                elif look.turn is _Is.UNDECIDED:
                    await until_quiet(self._rest, self._policy.is_undecided)
                    self._decide(look.position)
                else:
                    await self._ablock(turn, woken, look.position, patience)
        except BaseException:
            self._leave(turn)
            raise

    def wait_for_others(self, is_missing: Callable[[], bool]) -> None:
        """Block this thread for a moment, while something `is_missing` that others may do.

        Does nothing on an event loop: its tasks could do nothing meanwhile.
        """
        until = monotonic_ns() + int(GRACE_SECONDS * 1e9)
        while not loop_is_running() and is_missing() and monotonic_ns() < until:
            # A thread that was just started is not known to be of the run yet.
            if self._rest.alone and threading.active_count() == 1:
                return
            real_sleep(_LOOK_SECONDS)

    def wait_for_end(self, patience: float) -> None:
        """Block this thread until the replay is over, or for `patience` and `STALL_SECONDS`."""
        if loop_is_running():
            return
        woken = threading.Event()
        with self._line.held:
            if self._line.is_open:
                return
            self._ends[woken] = woken.set
        woken.wait(patience + STALL_SECONDS)

    async def await_end(self, patience: float) -> None:
        """Wait on the event loop as `wait_for_end` does in a thread."""
        with self._line.held:
            if self._line.is_open:
                return
            woken, self._ends[object()] = _sleeper()
        await _woken(woken, patience + STALL_SECONDS)

    def _follows(self, owner: int) -> bool:
        """Return whether a delivery continues the last one: then nothing else is under way."""
        return self._line.last_owner == owner == self._gate.last

    def _takes(self, turn: int, owner: int, moment: int) -> bool:
        """Take a turn at once if it is next and nothing else is concerned.

        Most turns are taken here. It does what `_look` and `_take` do, in a fraction of the time.
        """
        line = self._line
        if line.here or line.passed or line.absent or line.is_open or not self._policy.is_simple:
            return False
        position = line.position
        if position >= len(line.order) or line.order[position] != (turn, owner) or owner < 0:
            return False
        if self._pace.seconds_until(moment):
            return False
        line.last_owner = self._gate.last = owner
        line.position = position + 1
        self._last_moment = moment or self._last_moment
        return True

    def _look(self, turn: int, owner: int, moment: int) -> _Look:
        line, policy = self._line, self._policy
        line.stand(turn, owner)
        line.pass_stopped_timers()
        if policy.is_due(turn):
            return _Look(_Is.DUE, self._pace.seconds_until(moment), line.position)
        if policy.awaits_timer():
            hold = _TIMER_SECONDS if line.first_awaited() == turn else 0.0
            return _Look(_Is.LATER, hold, line.position)
        state = _Is.UNDECIDED if policy.is_undecided() else _Is.LATER
        return _Look(state, 0.0, line.position)

    def _take(self, turn: int, owner: int, moment: int) -> None:
        self._line.last_owner = self._gate.last = owner
        self._last_moment = moment or self._last_moment  # A sleep has none.
        self._policy.take(turn, owner)
        self._line.pass_(turn)
        self._overtaking.hand_on_watch(turn)

    def _leave(self, turn: int) -> None:
        with self._line.held:
            self._line.leave(turn)
            self._overtaking.hand_on_watch(turn)

    def _decide(self, position: int) -> None:
        with self._line.held:
            self._policy.decide(position)

    def _limit(self, moment: int) -> float | None:
        """Return how long to wait for other threads to come to rest before this delivery.

        If little time had passed since the one before, they had come to rest in the recording. They
        will again, however slow this machine is.
        """
        if not (moment and self._last_moment):
            return None
        passed = (moment - self._last_moment) / 1e9
        return STALL_SECONDS if 0 <= passed < LIMIT_SECONDS / 2 else None

    def _block(self, turn: int, woken: threading.Event, position: int, seconds: float) -> None:
        """Block this thread until it is woken or the first has gone ahead."""
        until = monotonic_ns() / 1e9 + seconds
        look_after, latest = _WATCH_SECONDS
        while (left := until - monotonic_ns() / 1e9) > 0:
            watches = self._overtaking.watches(turn, in_thread=True)
            if woken.wait(min(look_after, left) if watches else left):
                return
            if watches and self._overtaking.went_ahead():
                return
            look_after = min(2 * look_after, latest)
        self._rest.wait(STALL_SECONDS)  # What is first may only be slower now.
        self._overtaking.go_ahead(position)

    async def _ablock(
        self, turn: int, woken: asyncio.Future[None], position: int, patience: float
    ) -> None:
        """Wait on the event loop as `_block` does in a thread; without threads, it may stall."""
        seconds = patience + (GRACE_SECONDS if self._policy.is_live else STALL_SECONDS)
        until = monotonic_ns() / 1e9 + seconds
        look_after, latest = _WATCH_SECONDS
        while (left := until - monotonic_ns() / 1e9) > 0:
            watches = not self._rest.alone and self._overtaking.watches(turn, in_thread=False)
            if await _woken(woken, min(look_after, left) if watches else left):
                return
            if watches and self._overtaking.went_ahead(partial(has_nothing_to_do, GRACE_SECONDS)):
                return
            look_after = min(2 * look_after, latest)
        if self._policy.is_live:
            self._overtaking.go_ahead(position)
        else:
            owner = self._overtaking.missing_owner(position)
            if owner is not None:
                raise StallError(owner, patience + STALL_SECONDS)


def _sleeper() -> tuple[asyncio.Future[None], Callable[[], None]]:
    """Return what a task of this loop waits for, and what wakes it from any thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        with suppress(RuntimeError):  # The loop was closed: nothing is left to wake.
            loop.call_soon_threadsafe(_resolve, future)

    return future, wake


async def _woken(future: asyncio.Future[None], seconds: float) -> bool:
    """Wait to be woken for at most `seconds`, and return whether that happened."""
    done, _ = await wait_for_any([future], timeout=seconds)
    return bool(done)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
