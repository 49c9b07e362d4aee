"""What answers the requests of a replay: its tape, or the run has diverged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from tracefork_core.errors import Divergence, DivergenceError, ReplayError, TraceforkError
from tracefork_core.exchange.contract import Request
from tracefork_core.exchange.lane import Anew, current_lane, lane_names
from tracefork_core.exchange.telemetry import is_report
from tracefork_core.explaining import divergence
from tracefork_core.masking.masking import Masking
from tracefork_core.matching.comparable import Form, form
from tracefork_core.order.pace import Pace
from tracefork_core.order.turns import turns_of
from tracefork_core.order.turnstile import StallError, Turnstile
from tracefork_core.session.auxiliary_answers import StandIn, acknowledged, not_held
from tracefork_core.session.live_exchange import LiveExchange
from tracefork_core.session.prepared_exchange import PreparedExchange
from tracefork_core.session.replayed_exchange import ReplayedExchange
from tracefork_core.session.tape_source import Source
from tracefork_core.tape import Exchange

Answer = LiveExchange | ReplayedExchange | PreparedExchange | StandIn


class Answered(Protocol):
    """What answers need of their session."""

    masking: Masking
    anew: tuple[Anew, ...]
    asked: int
    suspects: list[Callable[[], Iterable[str]]]

    def check(self) -> None: ...

    def poison_with(self, error: TraceforkError) -> TraceforkError: ...


class Answers:
    """Answers each request from the tape, in its turn. Implements `replayed_exchange.Player`.

    `auxiliary_misses` counts the auxiliary requests that the tape does not hold.
    """

    def __init__(self, session: Answered, source: Source, turnstile: Turnstile, pace: Pace) -> None:
        self._session = session
        self.source = source
        self.turnstile = turnstile
        self._pace = pace
        self.auxiliary_misses = 0
        self.check, self.poison_with = session.check, session.poison_with

    def open(self, request: Request) -> Answer:
        """Answer a request.

        Raises:
            TraceforkError: the run left its tape.
        """
        lane = lane_names(self._session)
        return self._from_tape(request, lambda: self._masked(request), *lane)

    def left_over(self) -> DivergenceError | None:
        """Return what to say where something had to be asked for and was not."""
        left = self.source.left_over()
        return DivergenceError(self._with_suspects(left)) if left is not None else None

    def check_asked(self, thread: str) -> None:
        """Raise where something that a recorded thread of a framework asked was not asked for.

        Raises:
            DivergenceError: it was not.
        """
        left = self.source.left_on(thread)
        if left is not None:
            raise self._diverge(left)

    @property
    def completed(self) -> list[int]:
        """The exchanges in the order in which a reordered replay answered them whole."""
        return self.turnstile.completed

    @property
    def is_complete(self) -> bool:
        """Whether the recording was closed."""
        return self.source.tape.complete

    def unanswered(self, exchange: Exchange) -> TraceforkError:
        """Poison the session: more is asked of an exchange than the tape holds."""
        if exchange.end != "open" or self.is_complete:
            return self._diverge(divergence.read_further(self.source.tape, exchange))
        return self.poison_with(ReplayError(divergence.cut_off(self.source.tape, exchange)))

    def stalled(self, waiting: Exchange, stall: StallError) -> TraceforkError:
        """Poison the session: the recorded order cannot come about."""
        tape = self.source.tape
        missing = tape.exchanges[stall.owner]
        asked = self.source.was_asked(missing.n)
        return self._diverge(divergence.stalled(tape, waiting, missing, stall.seconds, asked=asked))

    def _from_tape(
        self, request: Request, masked: Callable[[], Form], lane: str, in_step: str
    ) -> Answer:
        found = self.source.take(form(request), masked, lane, in_step)
        if found is None:
            if is_report(request.method, request.url, request.headers, request.body):
                return acknowledged(request)
            self.auxiliary_misses += 1
            return not_held(request.method, request.url.partition("?")[0])
        self._session.asked += 1
        if isinstance(found, Divergence):
            raise self._diverge(found)
        if found.is_auxiliary:
            for turn, _ in turns_of([found]):
                self.turnstile.come_for(turn)
        self._pass_point(found.n)
        if found.aside.started:
            self._pace.asked(found.aside.started)
        return ReplayedExchange(self, found)

    def _masked(self, request: Request) -> Form:
        return form(self._session.masking.request(request))

    def _pass_point(self, n: int) -> None:
        """Draw anew on this lane from here on, where the fork does, or did when it was made."""
        for anew in self._session.anew:
            if n >= anew.at:
                anew.since.add(current_lane(self._session))

    def _diverge(self, what: Divergence) -> TraceforkError:
        return self.poison_with(DivergenceError(self._with_suspects(what)))

    def _with_suspects(self, what: Divergence) -> Divergence:
        """Add what the session itself knows to be otherwise than when this was recorded."""
        session = self._session
        found = [session.masking.text(hint) for suspect in session.suspects for hint in suspect()]
        return replace(what, hints=(*found, *what.hints))
