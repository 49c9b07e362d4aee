"""Replay a run: every exchange is answered from the tape, or the run has diverged."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tracefork_core.determinism.clock import RecordedClock
from tracefork_core.egress import Watch
from tracefork_core.errors import ReplayError, TraceforkError
from tracefork_core.run.scope import Scope
from tracefork_core.session import Session
from tracefork_core.session.masking import Masking, Masks
from tracefork_core.tape import Tape


@dataclass(slots=True)
class Replaying:
    """A run that is being replayed.

    Attributes:
        tape: the tape it is answered from, open until the block ends.
        exchanges: how many were answered, once the block has ended.
        digest: of what was asked and answered, once the block has ended.
        clock_misses: reads of the clock that the tape had no value for.
        reordered: deliveries that could not wait for their recorded turn, once the block has ended.
        sockets: how many connections were let through, by `allow` alone.
        subprocesses: the programs that were started, once the block has ended.
    """

    tape: Tape
    exchanges: int = 0
    digest: str | None = None
    clock_misses: int = 0
    reordered: int = 0
    sockets: int = 0
    subprocesses: list[str] = field(default_factory=list)


class _Replay(Scope[Replaying]):
    def __init__(
        self,
        path: Path,
        *,
        matchers: Sequence[str],
        ambient: bool,
        clock: bool,
        allow: Collection[str],
        subprocesses: bool,
        mask: Sequence[str],
    ) -> None:
        super().__init__(ambient=ambient, clock=clock, allow=allow, subprocesses=subprocesses)
        self._path = path
        self._matchers = matchers
        self._mask = mask

    def _begin(self, stack: ExitStack) -> Replaying:
        tape = stack.enter_context(Tape.open(self._path))
        if not tape.keeps_bodies:
            raise ReplayError(
                f"tracefork: {self._path} was recorded in mode metadata: it holds the hashes of "
                "what was said, and nothing to answer with. Record in mode safe to replay."
            )
        masking = _masking(tape, self._mask)
        self._session = Session(source=tape, matchers=self._matchers, masking=masking)
        recorded = tape.draws
        # A tape recorded without its clock replays without one: reads stay real.
        self._clock = self._clock and bool(recorded)
        self._recorded_clock = RecordedClock(self._session, recorded)
        self._run = Replaying(tape)
        self._watch: Watch | None = None
        stack.callback(self._take_stock)
        self._watch = self._switch_on(stack, self._session, "refuse", self._recorded_clock)
        return self._run

    def _take_stock(self) -> None:
        """Complete the result while the tape is still open."""
        session, run = self._session, self._run
        run.exchanges = session.asked
        run.digest = session.digest
        run.clock_misses = self._recorded_clock.misses
        run.reordered = session.turnstile.skipped
        if self._watch is not None:
            run.subprocesses = self._watch.subprocesses
            run.sockets = self._watch.connections
        self._unproven = (
            session.poison is None
            and session.left_over is None
            and not self._matchers
            and run.digest != run.tape.digest
        )

    def _finish(self, error: BaseException | None) -> TraceforkError | None:
        poison, left_over = self._session.poison, self._session.left_over
        if poison is not None:
            return poison
        if error is not None and not isinstance(error, SystemExit):
            # The agent stopped on its own before it could ask: its error says more than ours.
            if left_over is not None and isinstance(error, Exception):
                error.add_note(str(left_over))
            return None
        if left_over is None and self._unproven:
            return ReplayError(
                f"tracefork: every request matched, but the digest of this replay "
                f"({self._run.digest}) is not the tape's. Nothing is proven; please report this."
            )
        return left_over


def _masking(tape: Tape, mask: Sequence[str]) -> Masking:
    """Return what masks now what was masked when a tape was recorded."""
    environment = tape.environment
    masks = Masks.read(mask).as_on(environment)
    return Masking(tape.mode, masks)


def replay(
    path: str | Path,
    *,
    match: Sequence[str] = (),
    ambient: bool = True,
    clock: bool = True,
    allow: Collection[str] = (),
    subprocesses: bool = True,
    mask: Sequence[str] = (),
) -> Scope[Replaying]:
    """Replay what runs inside from a tape: a sync or async `with`, or a decorated function.

    Args:
        path: the tape.
        match: named matchers that widen what counts as equal: `json`, `ignore:/json/pointer`.
        ambient: instrument the HTTP libraries; False replays bound clients only.
        clock: answer reads of the wall clock from the tape.
        allow: hosts, "host:port" pairs or unix socket paths that may be reached all the same.
        subprocesses: whether other programs may be started.
        mask: the patterns that were masked when this was recorded, in the same order; names of
            variables are known from the tape.

    Raises:
        UsageError: there is no such tape, a matcher has no such name, or patterns are missing.
        TapeError: the file is not a tape, or is damaged.
        DivergenceError: the agent asked for something else, for more, or for less. Raised where it
            happens and again when the block ends.
        EgressError: something tried to leave by a door that no seam watches.
        ReplayError: the tape was cut off before this point.
    """
    return _Replay(
        Path(path),
        matchers=match,
        ambient=ambient,
        clock=clock,
        allow=allow,
        subprocesses=subprocesses,
        mask=mask,
    )
