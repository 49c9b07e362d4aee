"""The tape that a session writes: what is in flight on it, and in which turn each piece came."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from tracefork_core.errors import TapeError
from tracefork_core.exchange.current import current_step
from tracefork_core.order.quiet import Gate
from tracefork_core.patching.real_clock import monotonic_ns, time_ns
from tracefork_core.session.run_state import RunState
from tracefork_core.tape import StepRecord, TapeWriter
from tracefork_core.tape.event import STEP, STEP_END, StepEnd


class Sink:
    """Writes the tape of a recording or a fork; in a replay there is none, and nothing to write.

    Attributes:
        tape: what is written.
        broken: why the tape cannot be written any more, if it cannot.
        in_flight: the exchanges that have not ended, by number: call them to write their end.
        ended: duration in nanoseconds and size of each live answer that has ended.
        put_off: ends of exchanges that are written when the session is used next.
        next_turn: takes the next turn among the recorded deliveries.
        before_exchange: called with the tape before the next exchange goes onto it.
    """

    def __init__(
        self,
        state: RunState,
        tape: TapeWriter | None,
        gate: Gate,
        next_turn: Callable[[], int],
        *,
        strict: bool,
        now: Callable[[], int] | None = None,
    ) -> None:
        self._state = state
        self.tape = tape
        self.masking = state.masking
        self.gate = gate
        self.next_turn = next_turn
        self._strict = strict
        self.broken: TapeError | None = None
        self.in_flight: dict[int, Callable[[], None]] = {}
        self.ended: list[tuple[int, int]] = []
        self.put_off: deque[Callable[[], None]] = deque()
        self.before_exchange: list[Callable[[TapeWriter], None]] = []
        self._steps = Steps()
        self._pid = os.getpid()
        self._wall_zero = time_ns() - monotonic_ns()
        self._now = now

    def wall_ns(self) -> int:
        """Return the wall clock in nanoseconds, without a read that a virtual clock would see."""
        return self._wall_zero + monotonic_ns() if self._now is None else self._now()

    def write(self, action: Callable[[TapeWriter], None]) -> None:
        """Write to the tape. If that fails, the recording ends, but not the agent.

        Raises:
            TapeError: writing failed, and the session is strict.
        """
        if self.tape is None or self.broken is not None or self._pid != os.getpid():
            return  # In a forked child, only the parent writes the tape.
        try:
            action(self.tape)
            return
        except TapeError as error:
            self.broken = error
        except Exception as error:  # noqa: BLE001 - reported when the block ends; the agent goes on
            self.broken = TapeError(f"tracefork: recording to {self.tape.path} stopped: {error!r}.")
            self.broken.__cause__ = error
        if self._strict and self._state.active:
            raise self._state.poison_with(self.broken)

    def settle(self) -> None:
        """Write the ends that were put off."""
        while self.put_off:
            self.put_off.popleft()()

    def prepare(self) -> None:
        """Put on the tape what was drawn, read and waited for until now."""
        if self.tape is not None:
            for prepare in self.before_exchange:
                prepare(self.tape)

    def running_step(self) -> str | None:
        """Return the id of the innermost step that runs here."""
        return self._steps.running()

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
        """Put the end of a step on the tape, with the kind that it turned out to have."""
        self._steps.end(step)
        if self.tape and not self.broken:
            error = self.masking.text(error) if error else error
            self.tape.note(STEP_END, aside=StepEnd(step, self.wall_ns(), error, kind))


class Steps:
    """The steps of a session that have begun. Safe to use from any thread."""

    def __init__(self) -> None:
        self._parents: dict[str, str | None] = {}
        self._ended: set[str] = set()
        self._lock = threading.Lock()

    def begin(
        self, kind: str, name: str, parent: str | None, at: int, detail: dict[str, object]
    ) -> StepRecord:
        """Give a new step an id and return its record."""
        with self._lock:
            step = f"s{len(self._parents)}"
            self._parents[step] = parent
        return StepRecord(step, kind, name, parent, at, detail=detail)

    def end(self, step: str) -> None:
        """Note that a step has ended."""
        self._ended.add(step)

    def running(self) -> str | None:
        """Return the innermost step that runs here and has not ended.

        A framework's end callback may run in another context than its start. What the start set
        stays set there, so only the recorded end tells that a step is over.
        """
        step = current_step.get()
        while step in self._ended:
            step = self._parents.get(step)
        return step if step in self._parents else None
