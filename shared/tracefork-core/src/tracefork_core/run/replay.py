"""Replay a run: every exchange is answered from the tape, or the run has diverged."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tracefork_core.chance.chance import Chance
from tracefork_core.chance.guard.boundary import Mode as Boundary
from tracefork_core.chance.nondet_source import NondetSource
from tracefork_core.egress.guard import Watch
from tracefork_core.errors import (
    DivergenceError,
    ReplayError,
    StoppedError,
    TraceforkError,
    UsageError,
)
from tracefork_core.explaining import divergence
from tracefork_core.masking.masking import Masking
from tracefork_core.masking.masks import Masks
from tracefork_core.order.policies import Order
from tracefork_core.run.captured import REMEDY, outside_words
from tracefork_core.run.scope import Covers, Scope, Switches
from tracefork_core.run.surroundings import (
    compare_surroundings,
    other_versions,
    tell_differences,
)
from tracefork_core.run.writing import end_words, exit_status
from tracefork_core.seams.tools.named_tools import NamedTools
from tracefork_core.session.session import Session
from tracefork_core.tape import Tape
from tracefork_core.tape.event import Stop
from tracefork_core.tape.imported import GRADES
from tracefork_core.telemetry.instruments import MISSES
from tracefork_core.telemetry.work import Value, Work


@dataclass(slots=True)
class Replaying:
    """A run that is being replayed.

    Attributes:
        tape: the tape it is answered from, open until the block ends.
        exchanges: how many were answered, once the block has ended.
        digest: of what was asked and answered, once the block has ended.
        nondet: gives the time, ids and random values that were recorded, with nothing patched.
        clock_misses: reads of the clock that the tape had no value for.
        entropy_misses: draws of random bytes that the recorded run did not make.
        auxiliary_misses: token counts that are not on the tape, and were answered with an error.
        auxiliary_left: token counts that are on the tape and were not asked for.
        reordered: deliveries that could not wait for their recorded turn, once the block has ended.
        moved: says of each exchange that ran in another thread or task than when it was recorded,
            in which.
        completed: the exchanges in the order in which they were answered whole, where `order` was
            given.
        sockets: how many connections were let through, by `allow` alone.
        subprocesses: the programs that were started, once the block has ended.
        unwatched: the modules it loaded or used that connect in native code.
        leaks: what went past the tape, where a boundary is guarded.
        stop: the request that the fork was stopped before which made this branch, where the replay
            stopped, too.
        differences: what the agent read of its surroundings that differs from the recording.
        not_proven: what was not compared, because the file that the tape was imported from does not
            have it.
        left_alone: requests that other work of this process made meanwhile, once the block has
            ended.
    """

    tape: Tape
    nondet: NondetSource
    exchanges: int = 0
    digest: str | None = None
    clock_misses: int = 0
    entropy_misses: int = 0
    auxiliary_misses: int = 0
    auxiliary_left: int = 0
    reordered: int = 0
    moved: list[str] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    sockets: int = 0
    subprocesses: list[str] = field(default_factory=list)
    unwatched: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    stop: Stop | None = None
    differences: list[str] = field(default_factory=list)
    not_proven: list[str] = field(default_factory=list)
    left_alone: int = 0

    @property
    def untaped(self) -> dict[str, int]:
        """The tools that ran again, since the tape does not hold them, with their calls."""
        from tracefork_core.run.untaped import untaped_tools

        return untaped_tools(self.tape.path)


class _Replay(Scope[Replaying]):
    _operation = "replay"

    def __init__(
        self,
        path: Path,
        switches: Switches,
        *,
        matchers: Sequence[str],
        mask: Sequence[str],
        speed: float | None,
        order: Order | None,
        strict: bool,
    ) -> None:
        super().__init__(switches)
        self._path = path
        self._matchers = matchers
        self._mask = mask
        self._speed = speed
        self._order = order
        self._strict = strict

    def _begin(self, stack: ExitStack) -> Replaying:
        tape = stack.enter_context(answering(self._path))
        masking = masking_of(tape, self._mask)
        self._tools = NamedTools.on(tape)
        _check_order(self._order, tape)
        if self._strict and self._order is not None:
            raise UsageError(
                "tracefork: strict (--strict) compares the order, and order (--order) changes it. "
                "Use one of them."
            )
        _check_speed(self._speed)
        self._session = Session(
            source=tape,
            matchers=self._matchers,
            masking=masking,
            speed=self._speed,
            order=self._order,
            strict_lanes=self._strict,
        )
        self._chance = Chance(self._session, tape.chance)
        self._run = Replaying(tape, self._chance.nondet, leaks=self._leaks)
        self._watch: Watch | None = None
        stack.callback(self._take_stock)
        if self._switches.ambient:
            self._run.differences = compare_surroundings(stack, self._session, tape)
        self._session.suspects.append(lambda: other_versions(tape))
        self._watch = self._switch_on(stack, self._session, "refuse", self._chance)
        return self._run

    def _take_stock(self) -> None:
        """Complete the result while the tape is still open."""
        session, run, answers = self._session, self._run, self._session.answers
        assert answers is not None
        source = answers.source
        run.exchanges = session.asked + source.reports_left
        run.digest = source.digest
        run.clock_misses = self._chance.clock.misses
        run.entropy_misses = self._chance.entropy.misses
        run.auxiliary_misses = answers.auxiliary_misses
        run.auxiliary_left = source.auxiliary_left
        run.reordered = session.turnstile.skipped
        run.moved = source.moved
        run.completed = answers.completed
        run.stop = source.stop if answers.has_stopped else None
        run.not_proven = run.tape.imported.not_proven if run.tape.imported is not None else []
        if self._watch is not None:
            run.clock_misses += self._processes.clock_misses
            run.entropy_misses += self._processes.entropy_misses
            run.subprocesses = self._watch.subprocesses
            run.unwatched = sorted(self._watch.unwatched)
            run.sockets = self._watch.connections
        self._unproven = (
            session.poison is None
            and session.left_over is None
            and not self._matchers
            and not run.not_proven
            and not source.is_travelled
            and run.digest != run.tape.digest
            and not source.is_proven
        )

    def _finish(self, error: BaseException | None) -> TraceforkError | None:
        self._run.left_alone = self._left_alone
        poison, left_over = self._session.poison, self._session.left_over
        if poison is not None:
            return poison
        if left_over is None and self._strict and isinstance(error, SystemExit | None):
            left_over = self._other_order_or_end(error)
        if self._run.stop is not None and left_over is None:
            return self._stopped(self._run.stop)
        if left_over is None or error is not None:
            tell_differences(self._run.differences, error)
        if error is not None and not isinstance(error, SystemExit):
            # The agent stopped on its own before it could ask: its error says more than ours.
            if left_over is not None and isinstance(error, Exception):
                error.add_note(str(left_over).partition("\n")[0])
            return None
        if left_over is None and (outside := outside_words(self._run.tape.receipt)):
            return ReplayError(
                f"tracefork: nothing was captured in this recording, so its replay proves "
                f"nothing: {outside}. {REMEDY}"
            )
        return self._not_proven() if left_over is None and self._unproven else left_over

    def _facts(self, work: Work) -> dict[str, Value]:
        run = self._run
        left = isinstance(self._session.poison or self._session.left_over, DivergenceError)
        misses = {
            "divergence": int(left),
            "auxiliary": run.auxiliary_misses,
            "clock": run.clock_misses,
            "entropy": run.entropy_misses,
        }
        facts: dict[str, Value] = {
            **super()._facts(work),
            "tracefork.tape": self._session.masking.text(str(run.tape.path)),
            "tracefork.digest": run.digest or "",
        }
        for miss, count in misses.items():
            facts[f"tracefork.misses.{miss}"] = count
            work.measure(MISSES, count, miss=miss)
        return facts

    def _stopped(self, stop: Stop) -> TraceforkError:
        """Return what ends the block without an error where the branch ends, if that is proven."""
        if self._unproven:
            return self._not_proven()
        return StoppedError(f"tracefork: the fork was {stop.words}, and so its replay ends here.")

    def _not_proven(self) -> ReplayError:
        return ReplayError(
            f"tracefork: every request matched, but the digest of this replay "
            f"({self._run.digest}) is not the tape's. Nothing is proven; please report this."
        )

    def _other_order_or_end(self, error: SystemExit | None) -> DivergenceError | None:
        """Return the error for another order of deliveries or another end, if there is one."""
        run, tape = self._run, self._run.tape
        if run.reordered:
            return DivergenceError(divergence.overtaken(tape, run.reordered))
        receipt = tape.receipt
        if receipt is None or (receipt.outcome == "SystemExit" and receipt.status is None):
            return None  # The recording was cut off, or older than the field.
        now = end_words("ok" if error is None else "SystemExit", exit_status(error))
        then = end_words(receipt.outcome, receipt.status)
        return DivergenceError(divergence.ended(tape, then, now)) if now != then else None


def answering(path: Path) -> Tape:
    """Open a tape that a run can be answered from.

    Raises:
        ReplayError: it holds no bodies, or was imported from a file that has not all of them.
    """
    tape = Tape.open(path)
    try:
        _check_answers(tape)
    except BaseException:
        tape.close()
        raise
    return tape


def _check_answers(tape: Tape) -> None:
    if not tape.keeps_bodies:
        raise ReplayError(
            f"tracefork: {tape.path} was recorded in mode metadata: it holds the hashes of what "
            "was said, and nothing to answer with. Record in mode safe to replay and to fork."
        )
    imported = tape.imported
    if imported is not None and not imported.replays:
        raise ReplayError(
            f"tracefork: {tape.path} was imported from a {imported.format}, and its grade is "
            f"`{GRADES[imported.grade]}`: it does not have the bytes of each response, so nothing "
            f"can be answered from it. `tracefork show {shlex.quote(str(tape.path))}` shows what "
            "it has."
        )


def _check_speed(speed: float | None) -> None:
    if speed is not None and not 0 < speed < math.inf:
        raise UsageError(
            "tracefork: speed (--speed) takes a number above 0: 1 for the recorded pace."
        )


def _check_order(order: Order | None, tape: Tape) -> None:
    held = len(tape.exchanges)
    wrong = [] if order is None or isinstance(order, int) else [n for n in order if n >= held]
    if wrong:
        raise UsageError(
            f"tracefork: order (--order) names exchange {wrong[0]}, and {tape.path} has {held}, "
            "numbered from 0."
        )


def masking_of(tape: Tape, mask: Sequence[str]) -> Masking:
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
    entropy: bool = True,
    allow: Collection[str] = (),
    subprocesses: bool = True,
    mask: Sequence[str] = (),
    boundary: Boundary | None = None,
    speed: float | None = None,
    order: Order | None = None,
    strict: bool = False,
    scope: Covers = "context",
) -> Scope[Replaying]:
    """Replay what runs inside from a tape: a sync or async `with`, or a decorated function.

    Args:
        path: the tape.
        match: named matchers that widen what counts as equal: `json`, `ignore:/json/pointer`.
        ambient: instrument the HTTP libraries; False replays bound clients only.
        clock: answer reads of the wall clock from the tape.
        entropy: give the random values and ids that the recorded run got.
        allow: hosts, "host:port" pairs or unix socket paths that may be reached all the same.
        subprocesses: whether other programs may be started.
        mask: the patterns that were masked when this was recorded, in the same order; names of
            variables are known from the tape.
        boundary: as for `record`.
        speed: None for as fast as order allows, without sleeping; 1 for the pace of the recording,
            2 for twice that.
        order: deliver what overlaps in another order: that of a seed, or the exchanges with these
            numbers one after another. Everything else is as recorded, so an outcome that changes is
            a race.
        strict: also compare in which thread or task each exchange ran, and the order of the
            deliveries; and how the block ends, unless an exception leaves it.
        scope: as for `record`.

    Raises:
        UsageError: there is no such tape, a matcher has no such name, patterns are missing, or the
            speed is none.
        TapeError: the file is not a tape, or is damaged.
        DivergenceError: the agent asked for something else, for more, or for less. Raised where it
            happens and again when the block ends.
        EgressError: something tried to leave by a door that no seam watches.
        ReplayError: the tape was cut off before this point.
    """
    return _Replay(
        Path(path),
        Switches(ambient, clock, entropy, subprocesses, boundary, scope, allow),
        matchers=match,
        mask=mask,
        speed=speed,
        order=order,
        strict=strict,
    )
