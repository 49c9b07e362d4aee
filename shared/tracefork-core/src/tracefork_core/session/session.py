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
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tracefork_core.checkpoints.contract import Checkpoints
from tracefork_core.errors import DivergenceError, TraceforkError, again
from tracefork_core.exchange.contract import Request
from tracefork_core.exchange.lane import Anew
from tracefork_core.exchange.telemetry import is_telemetry, refusal
from tracefork_core.masking.masking import Masking
from tracefork_core.matching.comparable import form
from tracefork_core.matching.matchers import check_matchers
from tracefork_core.order.endings import recorded_waits, turns_of_waits, waits_before
from tracefork_core.order.forked_waits import ForkedWaits
from tracefork_core.order.pace import Pace
from tracefork_core.order.policies import Forked, Order, Recorded, Reordered
from tracefork_core.order.quiet import Gate
from tracefork_core.order.thread_rest import Rest
from tracefork_core.order.turns import turns_of
from tracefork_core.order.turnstile import Turnstile
from tracefork_core.order.waits import RecordedWaits, ReplayedWaits
from tracefork_core.session.answers import Answer, Answers
from tracefork_core.session.forked_answers import ForkedAnswers
from tracefork_core.session.forking import Fork, Plan, drawn_anew
from tracefork_core.session.hang_warning import Overtime
from tracefork_core.session.tape_sink import Sink
from tracefork_core.session.tape_source import Source, skipped_on
from tracefork_core.session.travel import Travels
from tracefork_core.tape import Tape, TapeWriter
from tracefork_core.tape.event import Reads


class Session:
    """One run under a tape. Implements `exchange.contract.Session`; safe to use from any thread.

    Attributes:
        source: the tape that it is answered from; None where it is not.
        sink: the tape that it writes, if it writes one.
        answers: what answers it from a tape; None in a recording.
        fork: what it does otherwise than the tape, where it does.
        poison: the first thing that went wrong.
        left_over: what should have been asked for and was not, once it is closed.
        asked: how many exchanges were asked for.
        suspects: asked, where it diverges, what is otherwise than when this was recorded.
        anew: what is drawn anew: by the forks that made the branch, and at last by this one.
    """

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
        self.masking = masking or Masking()
        self.poison: TraceforkError | None = None
        self.left_over: DivergenceError | None = None
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._open = True
        self._overtime = Overtime()
        self.threads: set[int] = set()
        self.asked = 0
        self.suspects: list[Callable[[], Iterable[str]]] = []
        self.fork = Fork(plan, source) if source and plan else None
        self.anew = _anew(source, plan)
        rest, pace = Rest(self.threads), Pace(speed)
        skipped = skipped_on(source) if source else set()
        recorded = [one for one in source.exchanges if one.n not in skipped] if source else []
        waits = recorded_waits(source) if source else []
        if plan:
            waits = list(waits_before(waits, [one for one in recorded if one.n >= plan.at]))
            recorded = [one for one in recorded if one.n < plan.at]
        turns = [*turns_of(recorded, ordered=order is None), *turns_of_waits(waits)]
        gate, next_turn = Gate(rest), itertools.count().__next__
        forked = Forked(turns) if plan else None
        if forked is not None:
            self.turnstile, next_turn = Turnstile(forked, gate, pace), forked.next_turn
        else:
            policy = Recorded(turns) if order is None else Reordered(turns, order)
            self.turnstile = Turnstile(policy, gate, pace)
        self.sink = Sink(self, sink, self.masking, gate, next_turn, strict=strict)
        self.answers = self._answers(Source(source, matchers, self.fork), pace) if source else None
        self.waits = self._waits(waits, gate, pace, forked)
        self.travels = Travels(self, self.answers.source if self.answers else None, self._lock)

    @property
    def active(self) -> bool:
        """Whether the session is open, in the process that opened it."""
        return self._open and self._pid == os.getpid()

    def open(self, request: Request) -> Answer | None:
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
            self.sink.settle()
            if self.answers is not None:
                return self.answers.open(request)
            return self._recorded(request) if self.sink.tape else None

    def check(self) -> None:
        """Raise the error that poisoned the session, if one did."""
        if self.poison is not None:
            raise again(self.poison)

    def check_asked(self, thread: str) -> None:
        """Raise where not all was asked that a recorded thread of a framework asked.

        Raises:
            DivergenceError: an exchange of the thread was not asked for.
        """
        if self.answers is not None:
            with self._lock:
                self.answers.check_asked(thread)

    def tell_as_recorded(self, thread: str) -> None:
        """Learn that a recorded thread of a framework is given what it was given then."""
        if self.answers is not None:
            with self._lock:
                self.answers.source.as_recorded.add(thread)

    def begin_step(
        self, kind: str, name: str, parent: str | None, detail: dict[str, object]
    ) -> str:
        """Put the beginning of a step on the tape and return the step's id."""
        return self.sink.begin_step(kind, name, parent, detail)

    def end_step(self, step: str, error: str | None, kind: str | None = None) -> None:
        """Put the end of a step on the tape, with the kind that it turned out to be of."""
        self.sink.end_step(step, error, kind)

    def poison_with(self, error: TraceforkError) -> TraceforkError:
        """Remember the first error, let everybody who waits run into it, and return it."""
        with self._lock:
            if not self._open:
                return error
            if self.poison is None:
                self.poison = error
                if self.source is not None:
                    self._overtime.begin()
        self.turnstile.break_open()
        return self.poison

    def wait_for_others(self) -> None:
        """Give threads that go on a moment to ask for what they asked for when this was recorded.

        The agent does not wait for them, or it would have.
        """
        self.turnstile.wait_for_others(self._is_left_over)

    def close(self) -> None:
        """End the session: what is in flight stays open on the tape, what is left over is said."""
        with self._lock:
            if not self._open:
                return
            if self.answers is not None and self.poison is None:
                self.left_over = self.answers.left_over()
            self._open = False
            self._overtime.end()
            flights = self.sink.in_flight()
        for flight in flights:
            flight.settle()
        self.turnstile.break_open()
        self.sink.prepare()

    def checkpoints(self, path: Path) -> Checkpoints:
        """Return what becomes of a framework's checkpoints, which lie at `path` otherwise."""
        return self.travels.checkpoints(path)

    @property
    def tapes(self) -> tuple[Path, ...]:
        """Where the tapes lie that it is answered from, and that it writes: in that order."""
        return tuple(tape.path for tape in (self.source, self.sink.tape) if tape is not None)

    @property
    def fork_point(self) -> int | None:
        """The number of the exchange that it forks at; None where it forks nothing."""
        return self.fork.plan.at if self.fork else None

    def _is_left_over(self) -> bool:
        with self._lock:
            if self.answers is None or self.poison is not None:
                return False
            return self.answers.source.left_over() is not None

    def _answers(self, source: Source, pace: Pace) -> Answers:
        if self.fork is None:
            return Answers(self, source, self.turnstile, pace)
        return ForkedAnswers(self, source, self.turnstile, pace, self.fork, self.sink)

    def _waits(
        self,
        recorded: Iterable[Reads],
        gate: Gate,
        pace: Pace,
        forked: Forked | None,
    ) -> RecordedWaits | ReplayedWaits | ForkedWaits:
        live = RecordedWaits(self, gate, self.sink.next_turn)
        if self.sink.tape:
            self.sink.before_exchange.append(live.flush)
        if self.answers is None:
            return live
        replayed = ReplayedWaits(self, recorded, self.turnstile, pace)
        if forked is None:
            return replayed
        self.sink.before_exchange.append(forked.flush)
        return ForkedWaits(replayed, live, self.turnstile, forked)

    def _recorded(self, request: Request) -> Answer:
        n, self.asked = self.asked, self.asked + 1
        return self.sink.live(n, request, form(self.masking.request(request)))


def _anew(source: Tape | None, plan: Plan | None) -> tuple[Anew, ...]:
    recorded = drawn_anew(source.branch, plan) if source else []
    places = [Anew(salt, at, is_recorded=True) for at, salt in recorded]
    if plan and plan.salt:
        places.append(Anew(plan.salt, plan.at))
    return tuple(places)
