"""What answers the requests of a replay: its tape, or the run has diverged.

In a fork the tape answers up to the fork point. From there on the plan decides: a request is sent
for real, or gets an answer that is known before.
"""

from __future__ import annotations

from dataclasses import replace

from tracefork_core.errors import (
    Divergence,
    DivergenceError,
    StoppedError,
    TraceforkError,
    WriteError,
)
from tracefork_core.explaining import divergence
from tracefork_core.matching.attempt import Attempt
from tracefork_core.order.pace import Pace
from tracefork_core.order.turns import turns_of
from tracefork_core.order.turnstile import Turnstile
from tracefork_core.session.forking import Fork
from tracefork_core.session.live_exchange import LiveExchange
from tracefork_core.session.prepared_exchange import (
    PreparedExchange,
    StandIn,
    acknowledged,
    not_held,
)
from tracefork_core.session.reading import Reading
from tracefork_core.session.replayed_exchange import ReplayedExchange
from tracefork_core.session.run_state import RunState
from tracefork_core.session.tape_sink import Sink
from tracefork_core.session.tape_source import Source
from tracefork_core.tape.digest import sha256

Answer = LiveExchange | ReplayedExchange | PreparedExchange | StandIn


class Answers:
    """Answers each request from the tape, in its turn.

    A branch whose fork was stopped ends at a request that has no answer. A replay stops there, too,
    with the same kind of error. So does any other thread or task that asks for more.

    Attributes:
        auxiliary_misses: how many auxiliary requests the tape does not hold.
        has_stopped: whether the request was met that the fork was stopped before.
    """

    def __init__(self, state: RunState, source: Source, turnstile: Turnstile, pace: Pace) -> None:
        self._state = state
        self.source = source
        self._turnstile = turnstile
        self._pace = pace
        self.reading = Reading()
        self.auxiliary_misses = 0
        self.has_stopped = False

    def open(self, attempt: Attempt) -> Answer:
        """Answer a request.

        Raises:
            TraceforkError: the run left its tape.
        """
        match = self.source.take(attempt)
        if match is None:
            if attempt.is_report:
                return acknowledged(attempt.request)
            self.auxiliary_misses += 1
            return not_held(attempt.request.method, attempt.request.url.partition("?")[0])
        if isinstance(match, Divergence) and (stopped := self._stopped(attempt)) is not None:
            raise stopped
        self._state.asked += 1
        if isinstance(match, Divergence):
            raise self._state.diverge(match)
        if match.is_auxiliary:
            for turn, _ in turns_of([match]):
                self._turnstile.come_for(turn)
        self._pass_point(match.n, attempt.lane)
        if match.aside.started:
            self._pace.asked(match.aside.started)
        progress = None if match.is_auxiliary else self.reading.begin(match)
        return ReplayedExchange(self._state, self.source, self._turnstile, match, progress)

    def _stopped(self, attempt: Attempt) -> TraceforkError | None:
        """Return the error for a request that the fork which made this branch was stopped before.

        The session is not poisoned: other lanes may have recorded answers to come.
        """
        stop = self.source.stop
        if stop is None:
            return None
        asked = {sha256(form.key) for form in (attempt.plain, attempt.masked)}
        self.has_stopped = self.has_stopped or stop.request in asked
        if not self.has_stopped and attempt.lane == stop.lane:
            return None
        return (WriteError if stop.is_write else StoppedError)(
            f"tracefork: the fork was {stop.words}, and so its replay ends here."
        )

    def left_over(self) -> DivergenceError | None:
        """Return the error for what the agent never asked for or did not read, if there is any."""
        left = self.source.left_over() or self._left_unread() or self._left_before_stop()
        if left is None:
            return None
        return DivergenceError(replace(self._state.with_suspects(left), replayed=self._state.asked))

    def is_left_over(self) -> bool:
        """Return whether something was not asked for yet, or not read as far as recorded."""
        return self.source.left_over() is not None or self._left_unread() is not None

    def _left_before_stop(self) -> Divergence | None:
        """Describe the request that the fork was stopped before, if the agent never made it."""
        stop = self.source.stop
        if stop is None or self.has_stopped:
            return None
        return divergence.not_stopped(self.source.tape, stop)

    def check_asked(self, thread: str) -> None:
        """Raise unless everything was asked that a recorded thread of a framework asked.

        Raises:
            DivergenceError: an exchange of the thread was not asked for.
        """
        left = self.source.left_on(thread)
        if left is not None:
            raise self._state.diverge(left)

    @property
    def completed(self) -> list[int]:
        """The exchanges in the order in which a reordered replay answered them completely."""
        return self._turnstile.completed

    def _left_unread(self) -> Divergence | None:
        """Describe an answer that was read less far than when it was recorded.

        Deliveries in another order may end the interest in an answer, and so may a run that began
        in the middle. What a branch shares with its parent is as far on the tape as the parent
        read it.
        """
        branch = self.source.tape.branch
        short = self.reading.short(branch.at if branch is not None else 0)
        if short is None or self.source.is_travelled or self._turnstile.is_reordered:
            return None
        return divergence.read_less(self.source.tape, short.exchange, short.chunks, short.size)

    def _pass_point(self, n: int, lane: str) -> None:
        """Draw new values on this lane from here on, if a fork does so after exchange `n`."""
        for redraw in self._state.redraws:
            if n >= redraw.at:
                redraw.since.add(lane)


class ForkedAnswers(Answers):
    """Answers from the tape up to the fork point, and as planned after it, onto `sink`."""

    def __init__(
        self,
        state: RunState,
        source: Source,
        turnstile: Turnstile,
        pace: Pace,
        fork: Fork,
        sink: Sink,
    ) -> None:
        super().__init__(state, source, turnstile, pace)
        self._fork = fork
        self._sink = sink

    def _left_unread(self) -> Divergence | None:
        return None  # What the fork changed may end the interest in an answer.

    def open(self, attempt: Attempt) -> Answer:
        if not attempt.is_report and self.source.comes_after(self._fork, attempt):
            return self._go_on(attempt)
        return super().open(attempt)

    def _go_on(self, attempt: Attempt) -> Answer:
        """Do what is planned for a request after the fork point."""
        fork, line = self._fork, self.source.line(attempt)
        if (first := fork.awaited(attempt, line)) is not None:
            differs = self.source.differs(first, attempt)
            if differs is not None:
                raise self._state.diverge(differs)
        try:
            step = fork.step(attempt, line, self._sink.in_flight)
        except TraceforkError as error:
            fork.stop_before(attempt, error)
            raise self._state.poison_with(error) from error.__cause__
        number, place = fork.next_number(), step.place.n if step.place else None
        self._pass_point(number, attempt.lane)
        self._state.asked += 1
        live = LiveExchange(
            self._sink,
            number,
            attempt,
            answered=step.answered,
            place=place,
            sends=step.sends,
        )
        return live if step.given is None else PreparedExchange(step.given, live)
