"""Record a foreign run onto a tape, as if it happened at the times that its file gives."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from tracefork_core.exchange.contract import AFTER
from tracefork_core.exchange.current import current_step
from tracefork_core.exchange.lane import opened
from tracefork_core.interop.importing.foreign_run import ForeignExchange, ForeignRun, ForeignStep
from tracefork_core.masking.masking import Masking
from tracefork_core.session.session import Session
from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.environment import describe
from tracefork_core.tape.held import HeldFile
from tracefork_core.tape.imported import IMPORTED, Imported

_MOST = 2**30
"""Bytes of one run: its file is in memory as well, and is smaller than that."""


class _Clock:
    """The time of the file, which stands still between its own times."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def write(run: ForeignRun, source: Path, content: bytes, target: Path) -> Receipt:
    """Write a run to a tape that appears whole or not at all.

    Args:
        run: what a reader found in the file.
        source: the file.
        content: its bytes.
        target: the tape to write.

    Raises:
        UsageError: the name is taken.
        TapeError: the tape cannot be written.
    """
    clock = _Clock()
    masking = Masking("safe")
    file = HeldFile(target, "safe", most=_MOST)
    writer = TapeWriter(target, describe(), held=file)
    try:
        writer.note(IMPORTED, aside=_origin(run, source, content))
        session = Session(sink=writer, masking=masking, now=clock, strict=True)
        with opened(session):
            _Recording(session, clock).record(run)
        return writer.close(
            Receipt(
                digest="",
                exchanges=0,
                connections=len(run.exchanges),
                crossed=len(run.exchanges),
                took=_took(run),
                outcome=run.outcome,
                secrets=masking.counts,
                unsearched=masking.unsearched,
            )
        )
    except BaseException:
        writer.discard()
        raise


def _took(run: ForeignRun) -> int:
    """Return the nanoseconds from the first beginning to the last end; 0 if there are no times."""
    starts = [exchange.started for exchange in run.exchanges if exchange.started]
    starts += [step.started for step in run.steps if step.started]
    ends = [exchange.started + (exchange.took or 0) for exchange in run.exchanges]
    ends += [step.ended or 0 for step in run.steps]
    return max(max(ends, default=0) - min(starts, default=0), 0)


def _origin(run: ForeignRun, source: Path, content: bytes) -> Imported:
    lower: dict[str, list[int]] = {}
    for n, exchange in enumerate(run.exchanges):
        if exchange.grade != "proven":
            lower.setdefault(exchange.grade, []).append(n)
    return Imported(
        format=run.format,
        file=source.name,
        sha256=sha256(content).hexdigest(),
        grade=run.grade,
        missing=run.missing,
        lower=lower,
        not_compared=run.not_compared,
        json_bodies=run.json_bodies,
        unknown_bodies=run.unknown_bodies,
        blamed=run.blamed,
    )


class _Recording:
    def __init__(self, session: Session, clock: _Clock) -> None:
        self._session = session
        self._clock = clock
        self._steps: dict[str, str] = {}

    def record(self, run: ForeignRun) -> None:
        known = {step.id: step for step in run.steps}
        for step in run.steps:
            self._begin(step, known)
        for exchange in run.exchanges:
            token = current_step.set(self._steps.get(exchange.step or ""))
            try:
                self._exchange(exchange)
            finally:
                current_step.reset(token)
        for step in run.steps:
            if step.ended is not None:
                self._clock.now = step.ended
                self._session.end_step(self._steps[step.id], step.error)
        self._session.release()

    def _begin(self, step: ForeignStep, known: dict[str, ForeignStep]) -> str:
        """Begin a step after its parents; a circle of parents is cut where it is met."""
        if step.id in self._steps:
            return self._steps[step.id]
        above = []
        here: ForeignStep | None = step
        while here is not None and here.id not in self._steps and here not in above:
            above.append(here)
            here = known.get(here.parent or "")
        for each in reversed(above):
            self._clock.now = each.started
            parent = self._steps.get(each.parent or "")
            self._steps[each.id] = self._session.begin_step(
                each.kind, each.name, parent, self._detail(each)
            )
        return self._steps[step.id]

    def _detail(self, step: ForeignStep) -> dict[str, object]:
        """Return the detail of a step; the steps that it waited for have their ids on the tape."""
        waited = step.detail.get(AFTER)
        if not isinstance(waited, list):
            return step.detail
        known = [self._steps[each] for each in waited if each in self._steps]
        return {**step.detail, AFTER: known}

    def _exchange(self, exchange: ForeignExchange) -> None:
        start = self._clock.now = exchange.started
        live = self._session.open(exchange.request)
        if live is None or not live.is_live:
            return  # Telemetry of a framework: it is on no tape.
        end = start + (exchange.took or exchange.first_byte or 0)
        if exchange.head is not None:
            self._clock.now = start + min(exchange.first_byte or 0, end - start)
            live.head(exchange.head)
            for chunk in exchange.chunks:
                live.chunk(chunk)
        self._clock.now = end
        if exchange.failure is not None:
            live.fail(exchange.failure)
        elif exchange.head is not None:
            live.end()
        else:
            live.abandon()
