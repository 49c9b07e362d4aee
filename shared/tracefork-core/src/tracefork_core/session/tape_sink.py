"""The tape that a session writes: what goes onto it, in which turn, and what is in flight."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from tracefork_core.errors import TapeError, TraceforkError
from tracefork_core.exchange.caller import caller
from tracefork_core.exchange.contract import Request
from tracefork_core.exchange.current import running_checkpoint
from tracefork_core.exchange.lane import lane_names
from tracefork_core.exchange.telemetry import is_report
from tracefork_core.masking.masking import Masking
from tracefork_core.matching.comparable import Form
from tracefork_core.order.quiet import Gate
from tracefork_core.patching.real_clock import monotonic_ns
from tracefork_core.providers.auxiliary import is_auxiliary
from tracefork_core.session.live_exchange import LiveExchange
from tracefork_core.session.steps import Steps
from tracefork_core.tape import TapeWriter
from tracefork_core.tape.event import STEP, STEP_END, ExchangeAside, StepEnd


class Written(Protocol):
    """What a sink needs of its session."""

    @property
    def active(self) -> bool: ...

    def poison_with(self, error: TraceforkError) -> TraceforkError: ...


class Sink:
    """Implements `live_exchange.Recorder`. In a replay there is no tape, and nothing is written.

    Attributes:
        tape: what is written.
        broken: why that cannot be written any more, if it cannot.
        unsettled: exchanges whose end is written with the session's next word.
        next_turn: takes the next place among the deliveries of what is recorded.
        before_exchange: called with the tape before the next exchange goes onto it.
    """

    def __init__(
        self,
        session: Written,
        tape: TapeWriter | None,
        masking: Masking,
        gate: Gate,
        next_turn: Callable[[], int],
        *,
        strict: bool,
    ) -> None:
        self._session = session
        self.tape = tape
        self.masking = masking
        self.gate = gate
        self.next_turn = next_turn
        self._strict = strict
        self.broken: TapeError | None = None
        self.unsettled: deque[LiveExchange] = deque()
        self.before_exchange: list[Callable[[TapeWriter], None]] = []
        self._flights: dict[int, LiveExchange] = {}
        self._steps = Steps()
        self._pid = os.getpid()
        self._wall_zero = time.time_ns() - monotonic_ns()

    def wall_ns(self) -> int:
        """Return the wall clock in nanoseconds, without a read that a virtual clock would see."""
        return self._wall_zero + monotonic_ns()

    def write(self, action: Callable[[TapeWriter], None]) -> None:
        """Write to the tape. A tape that cannot be written ends the recording, not the agent.

        Raises:
            TapeError: it cannot, and the session is strict.
        """
        if self.tape is None or self.broken is not None or self._pid != os.getpid():
            return  # In a forked child, the tape is its parent's to write.
        try:
            action(self.tape)
            return
        except TapeError as error:
            self.broken = error
        except Exception as error:  # noqa: BLE001 - said when the block ends; the agent goes on
            self.broken = TapeError(f"tracefork: recording to {self.tape.path} stopped: {error!r}.")
            self.broken.__cause__ = error
        if self._strict and self._session.active:
            raise self._session.poison_with(self.broken)

    def live(
        self,
        n: int,
        request: Request,
        comparable: Form,
        *,
        answered: str = "",
        place: int | None = None,
    ) -> LiveExchange:
        """Begin exchange `n`. See `ExchangeAside` for `answered` and `place`."""
        self.prepare()
        where = caller(5)  # Nearer are this, what decided on it, the session and the seam.
        lane, in_step = lane_names(self._session)
        aside = ExchangeAside(
            lane=lane,
            in_step=in_step if in_step != lane else None,
            seam=request.seam,
            effect=request.effect,
            started=self.wall_ns(),
            answered=answered,
            place=place,
            step=self._steps.running(),
            checkpoint=running_checkpoint(),
            caller=self.masking.text(where) if where else None,
            url=comparable.url if comparable.url != comparable.record.url else None,
            sent=comparable.sent,
            auxiliary=is_auxiliary(request.method, request.url)
            or is_report(request.method, request.url, request.headers, request.body),
        )
        self._flights[n] = flight = LiveExchange(self, n, comparable, aside)
        return flight

    def forget(self, n: int) -> None:
        """Strike a finished exchange off the list of those in flight."""
        self._flights.pop(n, None)

    def in_flight(self) -> list[LiveExchange]:
        """Return the exchanges that have not ended."""
        return list(self._flights.values())

    def settle(self) -> None:
        """Write the ends that were put off."""
        while self.unsettled:
            self.unsettled.popleft().settle()

    def prepare(self) -> None:
        """Put on the tape what was drawn, looked at and waited for until now."""
        if self.tape is not None:
            for prepare in self.before_exchange:
                prepare(self.tape)

    def begin_step(
        self, kind: str, name: str, parent: str | None, detail: dict[str, object]
    ) -> str:
        """Put the beginning of a step on the tape and return the step's id."""
        if self.tape:
            name, detail = self.masking.text(name), self.masking.names(detail)
        begun = self._steps.begin(kind, name, parent, self.wall_ns(), detail)
        if self.tape and not self.broken:
            self.tape.note(STEP, aside=begun)
        return begun.id

    def end_step(self, step: str, error: str | None, kind: str | None) -> None:
        """Put the end of a step on the tape, with the kind that it turned out to be of."""
        self._steps.end(step)
        if self.tape and not self.broken:
            error = self.masking.text(error) if error else error
            self.tape.note(STEP_END, aside=StepEnd(step, self.wall_ns(), error, kind))
