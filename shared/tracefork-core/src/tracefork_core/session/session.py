"""The one state machine of record, replay and fork: what happens to an exchange.

A session has a *source* (the tape that answers it), a *sink* (the tape that it writes), or both:

    record   sink            every exchange is live and recorded
    replay   source          every exchange is answered from the tape, or the run has diverged
    fork     both, and a     before the fork point as in a replay; from there on an exchange is
             plan            changed or live, and recorded on a branch

The first error poisons the session: every later exchange raises it again, and the `with` block
raises it once more if the agent swallowed it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context
from pathlib import Path

from tracefork_core.checkpoints.contract import Checkpoints
from tracefork_core.errors import DivergenceError, EgressError, TraceforkError
from tracefork_core.exchange.contract import Redraw, Request, States, Waits
from tracefork_core.exchange.current import is_carried_by
from tracefork_core.exchange.kind import kind_of
from tracefork_core.exchange.lane import UNORDERED, lane_names
from tracefork_core.masking.masking import Masking
from tracefork_core.matching.attempt import Attempt
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
from tracefork_core.session.answers import Answer, Answers, ForkedAnswers
from tracefork_core.session.forking import Fork, Plan, salts_of
from tracefork_core.session.live_exchange import LiveExchange
from tracefork_core.session.run_state import RunState
from tracefork_core.session.session_checkpoints import CheckpointFiles
from tracefork_core.session.session_states import SessionStates
from tracefork_core.session.tape_sink import Sink
from tracefork_core.session.tape_source import Source, skipped_on
from tracefork_core.session.travel import Travel
from tracefork_core.tape import Tape, TapeWriter
from tracefork_core.tape.event import Reads


class Session:
    """One run under a tape. Implements `exchange.contract.Session`; safe to use from any thread.

    With `is_shared`, its event loop serves other runs, too: a delivery does not wait for those.
    `now` gives the nanoseconds since the epoch, where that is not the time of this machine.

    Attributes:
        source: the tape that answers it; None in a recording.
        sink: the tape that it writes, if it writes one.
        answers: what answers it from a tape; None in a recording.
        fork: what it does differently from the tape, in a fork.
        travel: how it leaves the order of its tape; None in a recording.
        state: what its parts share; the session shows some of it as its own.
        states: the stand-ins for state that outlives the run.
        left_over: the error for exchanges that were never asked for, once the session is closed.
    """

    unordered = UNORDERED

    def __init__(
        self,
        *,
        source: Tape | None = None,
        sink: TapeWriter | None = None,
        matchers: Sequence[str] = (),
        masking: Masking | None = None,
        strict: bool = False,
        strict_lanes: bool = False,
        speed: float | None = None,
        order: Order | None = None,
        plan: Plan | None = None,
        is_shared: bool = False,
        now: Callable[[], int] | None = None,
    ) -> None:
        check_matchers(matchers)
        self._matchers = tuple(matchers)
        self.source = source
        self.left_over: DivergenceError | None = None
        self.threads: set[int] = set()
        self.fork = Fork(plan, source) if source and plan else None
        rest, pace = Rest(self.threads), Pace(speed)
        skipped = skipped_on(source) if source else set()
        recorded = [one for one in source.exchanges if one.n not in skipped] if source else []
        waits = recorded_waits(source) if source else []
        if plan:
            waits = list(waits_before(waits, [one for one in recorded if one.n >= plan.at]))
            recorded = [one for one in recorded if one.n < plan.at]
        turns = [*turns_of(recorded, ordered=order is None), *turns_of_waits(waits)]
        gate, next_turn = (
            Gate(rest, self._is_ours if is_shared else None),
            itertools.count().__next__,
        )
        forked = Forked(turns) if plan else None
        if forked is not None:
            self.turnstile, next_turn = Turnstile(forked, gate, pace), forked.next_turn
        else:
            policy = Recorded(turns) if order is None else Reordered(turns, order)
            self.turnstile = Turnstile(policy, gate, pace)
        self.redraws = _redraws(source, plan)
        self.masking = masking or Masking()
        self.state = state = RunState(
            self.masking,
            self.redraws,
            wake_all=self.turnstile.break_open,
            warns_of_hang=source is not None,
        )
        self.suspects = state.suspects
        self.sink = Sink(state, sink, gate, next_turn, strict=strict, now=now)
        self.answers: Answers | None = None
        self.travel: Travel | None = None
        if source is not None:
            held = Source(source, matchers, self.fork, strict=strict_lanes)
            self.travel = Travel(state, held, self.turnstile)
            if self.fork is None:
                self.answers = Answers(state, held, self.turnstile, pace)
            else:
                self.answers = ForkedAnswers(
                    state, held, self.turnstile, pace, self.fork, self.sink
                )
        self._files = CheckpointFiles(state, self.sink, source, self.travel)
        self.states: States | None = SessionStates(state, self.sink, source)
        self.waits: Waits | None = self._waits(waits, gate, pace, forked)

    @property
    def active(self) -> bool:
        """Whether the session is open, in the process that opened it."""
        return self.state.active

    @property
    def poison(self) -> TraceforkError | None:
        """The first error of the run, if there was one."""
        return self.state.poison

    @property
    def asked(self) -> int:
        """How many exchanges were opened."""
        return self.state.asked

    def open(self, request: Request) -> Answer | None:
        """Decide what happens to an exchange.

        Raises:
            TraceforkError: the session is poisoned, or this request poisons it.
        """
        kind, state = kind_of(request), self.state
        if kind == "telemetry":
            self._check_telemetry(request.url)
            return None
        with state.lock:
            state.check()
            self.sink.settle()
            attempt = Attempt(request, kind, lane_names(self), self.masking, self._matchers)
            if self.answers is not None:
                return self.answers.open(attempt)
            if not self.sink.tape:
                return None
            n, state.asked = state.asked, state.asked + 1
            return LiveExchange(self.sink, n, attempt)

    def _check_telemetry(self, url: str) -> None:
        """Refuse telemetry unless this is a recording.

        The egress guard sees hosts, and some of these hosts also serve models. So the error is
        raised here, and the session is not poisoned.
        """
        if self.source is not None:
            raise EgressError(
                f"tracefork: replay does not send {url.partition('?')[0]}: a framework reports "
                "about itself there. Such reports are never on a tape. The run continues."
            )

    def check(self) -> None:
        """Raise a copy of the error that poisoned the session, if one did."""
        self.state.check()

    def check_asked(self, thread: str) -> None:
        """Raise unless everything was asked that a recorded thread of a framework asked.

        Raises:
            DivergenceError: an exchange of the thread was not asked for.
        """
        if self.answers is not None:
            with self.state.lock:
                self.answers.check_asked(thread)

    def mark_as_recorded(self, thread: str) -> None:
        """Note that a recorded thread gets the same input as when it was recorded."""
        if self.answers is not None:
            with self.state.lock:
                self.answers.source.as_recorded.add(thread)

    def begin_step(
        self, kind: str, name: str, parent: str | None, detail: dict[str, object]
    ) -> str:
        """Put the beginning of a step on the tape and return the step's id."""
        return self.sink.begin_step(kind, name, parent, detail)

    def end_step(self, step: str, error: str | None, kind: str | None = None) -> None:
        """Put the end of a step on the tape, with the kind that it turned out to have."""
        self.sink.end_step(step, error, kind)

    def take_in(self, environment: Mapping[str, str]) -> None:
        """Mask the secrets of another environment, too, from now on."""
        self.masking.take_in(environment)

    def poison_with(self, error: TraceforkError) -> TraceforkError:
        """Remember the first error, wake every waiting thread and task, and return that error."""
        return self.state.poison_with(error)

    def wait_for_others(self) -> None:
        """Give other threads a moment to ask for what they asked for when this was recorded.

        The agent does not wait for them, or it would have done so.
        """
        self.turnstile.wait_for_others(self._is_left_over)

    def close(self) -> None:
        """End the session. Exchanges in flight stay open on the tape; see `left_over`."""
        with self.state.lock:
            if not self.state.is_open:
                return
            if self.answers is not None and self.poison is None:
                self.left_over = self.answers.left_over()
            self.state.close()
            unfinished = list(self.sink.in_flight.values())
        for settle in unfinished:
            settle()
        self.turnstile.break_open()
        self.sink.prepare()

    def release(self) -> None:
        """Break the cycles of references in a closed session, so that it is freed at once.

        A service has thousands of sessions. Left to the garbage collector, they cost it more than
        all of the recording.
        """
        self.sink.before_exchange.clear()
        self.waits = None
        self.sink.gate.is_ours = self.sink.gate.last = None

    def checkpoints(self, path: Path) -> Checkpoints:
        """Return where a framework's checkpoints go that lie at `path` outside of a session."""
        return self._files.at(path)

    @property
    def tapes(self) -> tuple[Path, ...]:
        """The paths of the tape that answers it and of the tape that it writes, in that order."""
        return tuple(tape.path for tape in (self.source, self.sink.tape) if tape is not None)

    @property
    def fork_point(self) -> int | None:
        """The number of the exchange that it forks at; None if it is no fork."""
        return self.fork.plan.at if self.fork else None

    def _is_ours(self, callback: asyncio.Handle) -> bool:
        """Return whether a callback of an event loop is part of this run."""
        context: Context | None = getattr(callback, "_context", None)
        return context is None or is_carried_by(context, self)

    def _is_left_over(self) -> bool:
        with self.state.lock:
            if self.answers is None or self.poison is not None:
                return False
            return self.answers.is_left_over()

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


def _redraws(source: Tape | None, plan: Plan | None) -> list[Redraw]:
    salts = salts_of(source.branch, plan) if source else []
    redraws = [Redraw(salt, at, is_recorded=True) for at, salt in salts]
    if plan and plan.salt:
        redraws.append(Redraw(plan.salt, plan.at))
    return redraws
