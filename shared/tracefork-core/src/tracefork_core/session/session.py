"""The one state machine of record and replay: what happens to an exchange.

A session has a *source* (the tape it answers from), a *sink* (the tape it writes), or both:

    record   sink            every exchange is live and recorded
    replay   source          every exchange is answered from the tape, or the run has diverged
    fork     both, and a     what comes before the fork point is answered from the tape, or the run
             plan            has diverged; the rest is changed or live, and recorded on a branch

The first thing that goes wrong poisons the session: every later exchange raises it again, and the
`with` block raises it once more if somebody swallowed it.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from tracefork_core.checkpoints.contract import Checkpoints
from tracefork_core.errors import (
    Divergence,
    DivergenceError,
    ReplayError,
    TapeError,
    TraceforkError,
    again,
)
from tracefork_core.exchange.caller import caller
from tracefork_core.exchange.contract import Request
from tracefork_core.exchange.current import running_checkpoint
from tracefork_core.exchange.lane import Anew, current_lane, lane_in_step
from tracefork_core.exchange.telemetry import is_telemetry, refusal
from tracefork_core.providers.auxiliary import is_auxiliary
from tracefork_core.session import divergence
from tracefork_core.session.auxiliary import NotHeld
from tracefork_core.session.forked_waits import ForkedWaits, waits_before
from tracefork_core.session.forking import Fork, ForkStep, Plan
from tracefork_core.session.masking import Masking
from tracefork_core.session.matching import Form, check_matchers, form
from tracefork_core.session.pace import Pace
from tracefork_core.session.prepared import PreparedExchange
from tracefork_core.session.quiet import Gate
from tracefork_core.session.recording import LiveExchange
from tracefork_core.session.reordered import Order, Reordered
from tracefork_core.session.replaying import ReplayedExchange
from tracefork_core.session.rest import Rest
from tracefork_core.session.source import Source
from tracefork_core.session.steps import Steps
from tracefork_core.session.travelling import Travels
from tracefork_core.session.turns import StallError, Turnstile, turns_of
from tracefork_core.session.waits import (
    RecordedWaits,
    ReplayedWaits,
    recorded_waits,
    turns_of_waits,
)
from tracefork_core.tape import Exchange, Tape, TapeWriter
from tracefork_core.tape.digest import chain
from tracefork_core.tape.event import (
    STEP,
    STEP_END,
    ExchangeAside,
    StepEnd,
)

_Answer = LiveExchange | ReplayedExchange | PreparedExchange | NotHeld


class Session:
    """One run under a tape. Implements `exchange.contract.Session`; safe to use from any thread."""

    def __init__(
        self,
        *,
        source: Tape | None = None,
        sink: TapeWriter | None = None,
        matchers: Sequence[str] = (),
        masking: Masking | None = None,
        strict: bool = False,
        speed: float | None = None,
        order: Order | None = None,
        plan: Plan | None = None,
    ) -> None:
        check_matchers(matchers)
        self.source = source
        self.sink = sink
        self.masking = masking or Masking()
        self._strict = strict
        self.poison: TraceforkError | None = None
        self.left_over: DivergenceError | None = None
        self.broken: TapeError | None = None
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._open = True
        self.threads: set[int] = set()
        rest = Rest(self.threads)
        self.gate = Gate(rest)
        self._asked = 0
        self.auxiliary_misses = 0
        self._flights: dict[int, LiveExchange] = {}
        self.unsettled: deque[LiveExchange] = deque()
        self._steps = Steps()
        self._wall_zero = time.time_ns() - time.monotonic_ns()
        self.before_exchange: list[Callable[[TapeWriter], None]] = []
        recorded = source.exchanges if source else []
        waits = recorded_waits(source) if source else []
        self.fork = Fork(plan, source) if source and plan else None
        self.anew = _anew(source, plan)
        self._source = Source(source, matchers, self.fork) if source else None
        if plan:
            waits = list(waits_before(waits, recorded[plan.at :]))
            recorded = recorded[: plan.at]
        self._pace = Pace(speed)
        turns = [*turns_of(recorded, ordered=order is None), *turns_of_waits(waits)]
        self._turns = itertools.count(1 + max((turn for turn, _ in turns), default=-1))
        if order is None:
            self.turnstile = Turnstile(turns, rest, self._pace)
        else:
            self.turnstile = Reordered(turns, rest, self._pace, order)
        self.waits: RecordedWaits | ReplayedWaits | ForkedWaits
        replayed = ReplayedWaits(self, waits, self.turnstile, self._pace)
        self.waits = live = RecordedWaits(self, self.gate, self.next_turn)
        if source:
            self.waits = ForkedWaits(replayed, live) if self.fork else replayed
        if sink:
            self.before_exchange.append(live.flush)
        self.suspects: list[Callable[[], Iterable[str]]] = []
        self.travels = Travels(self, self._source, self._lock)

    @property
    def active(self) -> bool:
        """Whether the session is open, in the process that opened it."""
        return self._open and self._pid == os.getpid()

    def open(self, request: Request) -> _Answer | None:
        """Decide what happens to an exchange.

        Raises:
            TraceforkError: the session is poisoned, or this request poisons it.
        """
        if is_telemetry(request.url):
            if self.source is not None:
                raise refusal(request.url)
            return None
        with self._lock:
            self.check()
            while self.unsettled:
                self.unsettled.popleft().settle()
            self.masking.look_around()
            if self._source is not None:
                return self._answer(self._source, request)
            return self._live(self._masked(request), request) if self.sink else None

    def check(self) -> None:
        """Raise the error that poisoned the session, if one did."""
        if self.poison is not None:
            raise again(self.poison)

    def begin_step(
        self, kind: str, name: str, parent: str | None, detail: dict[str, object]
    ) -> str:
        """Put the beginning of a step on the tape and return the step's id."""
        if self.sink:
            name, detail = self.masking.text(name), self.masking.names(detail)
        begun = self._steps.begin(kind, name, parent, self.wall_ns(), detail)
        if self.sink and not self.broken:
            self.sink.note(STEP, aside=begun)
        return begun.id

    def end_step(self, step: str, error: str | None, kind: str | None = None) -> None:
        """Put the end of a step on the tape, with the kind that it turned out to be of."""
        self._steps.end(step)
        if self.sink and not self.broken:
            error = self.masking.text(error) if error else error
            self.sink.note(STEP_END, aside=StepEnd(step, self.wall_ns(), error, kind))

    def poison_with(self, error: TraceforkError) -> TraceforkError:
        """Remember the first error, let everybody who waits run into it, and return it."""
        with self._lock:
            if not self._open:
                return error
            if self.poison is None:
                self.poison = error
        self.turnstile.break_open()
        return self.poison

    def close(self) -> None:
        """End the session: what is in flight stays open on the tape, what is left over is said."""
        with self._lock:
            if not self._open:
                return
            left = self._source.left_over() if self._source and self.poison is None else None
            if left is not None:
                self.left_over = DivergenceError(self._with_suspects(left))
            self._open = False
            flights = list(self._flights.values())
        for flight in flights:
            flight.settle()
        if self.sink is not None:
            self._prepare(self.sink)
        self.turnstile.break_open()

    @property
    def completed(self) -> list[int]:
        """The exchanges in the order in which a reordered replay answered them whole."""
        order = self.turnstile.completed if isinstance(self.turnstile, Reordered) else []
        return [n for n in order if n >= 0]

    @property
    def asked(self) -> int:
        """How many exchanges were asked for."""
        return self._asked

    @property
    def digest(self) -> str:
        """The digest of what this replay asked and was answered, to compare with the tape's."""
        return self._source.digest if self._source else chain(())

    @property
    def auxiliary_left(self) -> int:
        """How many recorded auxiliary exchanges were not asked for."""
        return self._source.auxiliary_left if self._source else 0

    @property
    def is_proven(self) -> bool:
        """Whether all that was recorded was asked and answered, but for auxiliary requests."""
        return self._source is not None and self._source.is_proven

    def wall_ns(self) -> int:
        """Return the wall clock in nanoseconds, without a read that a virtual clock would see."""
        return self._wall_zero + time.monotonic_ns()

    def next_turn(self) -> int:
        """Take the next place among the deliveries of a recording."""
        return next(self._turns)

    def write(self, action: Callable[[TapeWriter], None]) -> None:
        """Write to the tape. A tape that cannot be written ends the recording, not the agent.

        Raises:
            TapeError: it cannot, and the session is strict.
        """
        if self.sink is None or self.broken is not None or self._pid != os.getpid():
            return  # In a forked child, the tape is its parent's to write.
        try:
            action(self.sink)
            return
        except TapeError as error:
            self.broken = error
        except Exception as error:  # noqa: BLE001 - said when the block ends; the agent goes on
            self.broken = TapeError(f"tracefork: recording to {self.sink.path} stopped: {error!r}.")
            self.broken.__cause__ = error
        if self._strict and self._open:
            raise self.poison_with(self.broken)

    def forget(self, n: int) -> None:
        """Strike a finished exchange off the list of those in flight."""
        self._flights.pop(n, None)

    def checkpoints(self, path: Path) -> Checkpoints:
        """Return what becomes of a framework's checkpoints, which lie at `path` otherwise."""
        return self.travels.checkpoints(path)

    @property
    def fork_point(self) -> int | None:
        """The number of the exchange that it forks at; None where it forks nothing."""
        return self.fork.plan.at if self.fork else None

    @property
    def is_complete(self) -> bool:
        """Whether the recording that is replayed was closed."""
        return self.source is not None and self.source.complete

    def unanswered(self, exchange: Exchange) -> TraceforkError:
        """Poison the session: more is asked of an exchange than the tape holds."""
        assert self.source is not None
        if exchange.end != "open" or self.is_complete:
            return self._diverge(divergence.read_further(self.source, exchange))
        return self.poison_with(ReplayError(divergence.cut_off(self.source, exchange)))

    def stalled(self, waiting: Exchange, stall: StallError) -> TraceforkError:
        """Poison the session: the recorded order cannot come about."""
        assert self.source is not None
        missing = self.source.exchanges[stall.owner]
        asked = self._source is not None and self._source.was_asked(missing.n)
        return self._diverge(
            divergence.stalled(self.source, waiting, missing, stall.seconds, asked=asked)
        )

    def _prepare(self, sink: TapeWriter) -> None:
        for prepare in self.before_exchange:
            prepare(sink)

    def _masked(self, request: Request) -> Form:
        return form(self.masking.request(request))

    def _answer(self, source: Source, request: Request) -> _Answer:
        """Answer from the tape, or after the fork point do what is planned."""
        lane = current_lane(self), lane_in_step(self)
        masked = self._masked(request) if self.fork is not None else None
        if self.fork is not None and masked and source.comes_after(self.fork, masked, *lane):
            return self._go_on(self.fork, source, request, masked)
        found = source.take(form(request), lambda: masked or self._masked(request), *lane)
        if found is None:
            self.auxiliary_misses += 1
            return NotHeld(request.method, request.url.partition("?")[0])
        self._asked += 1
        if isinstance(found, Divergence):
            raise self._diverge(found)
        if found.is_auxiliary:
            for turn, _ in turns_of([found]):
                self.turnstile.come_for(turn)
        self._pass_point(found.n)
        if found.aside.started:
            self._pace.asked(found.aside.started)
        return ReplayedExchange(self, found)

    def _pass_point(self, n: int) -> None:
        """Draw anew on this lane from here on, where the fork does, or did when it was made."""
        if self.anew is not None and n >= self.anew.at:
            self.anew.since.add(current_lane(self))

    def _go_on(self, fork: Fork, source: Source, request: Request, comparable: Form) -> _Answer:
        @cache
        def keys() -> frozenset[bytes]:
            return source.keys(comparable, form(request))

        def same(exchange: Exchange) -> bool:
            return source.asks(exchange, keys())

        try:
            step = fork.step(request, current_lane(self), comparable, same)
        except TraceforkError as error:
            raise self.poison_with(error) from error.__cause__
        if step.place is not None and step.place is fork.first:
            differs = source.differs(step.place, comparable, keys())
            if differs is not None:
                raise self._diverge(differs)
        self._pass_point(fork.plan.at)
        live = self._live(comparable, request, step)
        live.sends = step.sends
        return live if step.given is None else PreparedExchange(step.given, live)

    def _live(
        self, comparable: Form, request: Request, step: ForkStep | None = None
    ) -> LiveExchange:
        assert self.sink is not None
        n, self._asked = self._asked, self._asked + 1
        if self.fork is not None:
            n = self.fork.next_number()
        self._prepare(self.sink)
        where = caller(2 if step is None else 4)
        lane, in_step = current_lane(self), lane_in_step(self)
        aside = ExchangeAside(
            lane=lane,
            in_step=in_step if in_step != lane else None,
            seam=request.seam,
            effect=request.effect,
            started=self.wall_ns(),
            answered=step.answered if step else "",
            place=step.place.n if step and step.place else None,
            step=self._steps.running(),
            checkpoint=running_checkpoint(),
            caller=self.masking.text(where) if where else None,
            url=comparable.url if comparable.url != comparable.record.url else None,
            sent=comparable.sent,
            auxiliary=is_auxiliary(request.method, request.url),
        )
        self._flights[n] = flight = LiveExchange(self, n, comparable, aside)
        return flight

    def _diverge(self, what: Divergence) -> TraceforkError:
        return self.poison_with(DivergenceError(self._with_suspects(what)))

    def _with_suspects(self, what: Divergence) -> Divergence:
        """Add what the session itself knows to be otherwise than when this was recorded."""
        found = [self.masking.text(hint) for suspect in self.suspects for hint in suspect()]
        return replace(what, hints=(*found, *what.hints))


def _anew(source: Tape | None, plan: Plan | None) -> Anew | None:
    """Return what is drawn anew: by this fork, or by the one that made the branch."""
    made = plan or (source.branch if source else None)
    return Anew(made.salt, made.at) if made and made.salt else None
