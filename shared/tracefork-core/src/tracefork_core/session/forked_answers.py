"""What answers the requests of a fork: before its point the tape, after it what is planned."""

from __future__ import annotations

from functools import cache

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Request
from tracefork_core.exchange.lane import lane_names
from tracefork_core.exchange.telemetry import is_report
from tracefork_core.matching.comparable import Form, form
from tracefork_core.order.pace import Pace
from tracefork_core.order.turnstile import Turnstile
from tracefork_core.session.answers import Answer, Answered, Answers
from tracefork_core.session.forking import Fork
from tracefork_core.session.prepared_exchange import PreparedExchange
from tracefork_core.session.tape_sink import Sink
from tracefork_core.session.tape_source import Source
from tracefork_core.tape import Exchange


class ForkedAnswers(Answers):
    """Answers from the tape, and after the fork point live; what comes then goes onto `sink`."""

    def __init__(
        self,
        session: Answered,
        source: Source,
        turnstile: Turnstile,
        pace: Pace,
        fork: Fork,
        sink: Sink,
    ) -> None:
        super().__init__(session, source, turnstile, pace)
        self._fork = fork
        self._sink = sink

    def open(self, request: Request) -> Answer:
        lane = lane_names(self._session)
        masked = self._masked(request)
        if is_report(request.method, request.url, request.headers, request.body):
            return self._from_tape(request, lambda: masked, *lane)
        if self.source.comes_after(self._fork, masked, *lane):
            return self._go_on(request, masked)
        return self._from_tape(request, lambda: masked, *lane)

    def _go_on(self, request: Request, comparable: Form) -> Answer:
        """Do what is planned for a request after the fork point."""

        @cache
        def keys() -> frozenset[bytes]:
            return self.source.keys(comparable, form(request))

        def same(exchange: Exchange) -> bool:
            return self.source.asks(exchange, keys())

        fork, line = self._fork, self.source.line(*lane_names(self._session))
        if (first := fork.awaited(request, line)) is not None:
            differs = self.source.differs(first, comparable, keys())
            if differs is not None:
                raise self._diverge(differs)
        try:
            step = fork.step(request, line, comparable, same)
        except TraceforkError as error:
            raise self.poison_with(error) from error.__cause__
        number, place = fork.next_number(), step.place.n if step.place else None
        self._pass_point(number)
        self._session.asked += 1
        live = self._sink.live(number, request, comparable, answered=step.answered, place=place)
        live.sends = step.sends
        return live if step.given is None else PreparedExchange(step.given, live)
