"""Fork a run: answered from the tape up to a point, changed there, and live from there on."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tracefork_core.chance.chance import Chance
from tracefork_core.chance.guard.boundary import Mode as Boundary
from tracefork_core.chance.nondet_source import NondetSource
from tracefork_core.errors import (
    DivergenceError,
    TapeError,
    TraceforkError,
    UnwritableError,
    UsageError,
)
from tracefork_core.exchange.contract import Request
from tracefork_core.run.fork_point import Place, number_of, start_of
from tracefork_core.run.replay import answering, masking_of
from tracefork_core.run.scope import Covers, Scope, Switches
from tracefork_core.run.surroundings import other_versions
from tracefork_core.run.writing import Writing, environment_under
from tracefork_core.seams.libraries import check_kind
from tracefork_core.seams.tools.named_tools import NamedTools
from tracefork_core.session.forking import GIVEN, Plan, checked, salts_of
from tracefork_core.session.interventions import Edit, Fail, Intervention, Keep, Replace, described
from tracefork_core.session.session import Session
from tracefork_core.session.side_effects import Writes
from tracefork_core.tape import Exchange, Receipt, Tape, TapeWriter
from tracefork_core.tape.event import BRANCH, Branch, Change, Stop
from tracefork_core.telemetry.work import Value, Work

BeforeLive = Callable[[Request, Exchange | None], object]
"""Called before a live call with its request, and the recorded exchange whose place it takes."""


@dataclass(slots=True)
class Forking:
    """A run that is being forked.

    Attributes:
        path: the branch.
        parent: the tape that it is a branch of, open until the block ends.
        at: the number of the exchange that it was forked at.
        replayed: how many exchanges were answered from the tape, before and after the fork point,
            once the block has ended; `given` and `live` are the others.
        overspent: whether it was stopped for its live calls, once the block has ended.
        stop: the request that it was stopped before, once the block has ended.
        receipt: of the branch, once the block has ended.
    """

    path: Path
    parent: Tape
    at: int
    nondet: NondetSource
    replayed: int = 0
    given: int = 0
    live: int = 0
    overspent: bool = False
    stop: Stop | None = None
    receipt: Receipt | None = None
    leaks: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str | None:
        """The digest of the branch, once the block has ended."""
        return self.receipt.digest if self.receipt else None


@dataclass(frozen=True, slots=True)
class Options:
    """What `fork` and `rerun` are asked for: see there. `changes` has `replace` in it."""

    at: Place
    changes: Mapping[Place, Intervention]
    hold: Collection[Place]
    writes: Writes
    reads: Collection[str]
    until: Place | None
    calls: int | None
    tail: Edit | None
    onwards: bool
    redraw: bool
    reuse: bool
    rerun_tools: bool
    to: Path | None
    overwrite: bool
    match: Sequence[str]
    mask: Sequence[str]
    is_rerun: bool = False
    before_live: BeforeLive | None = None


class ForkScope(Writing[Forking]):
    """The block of a fork, or of a run that is run again."""

    def __init__(self, path: Path, switches: Switches, options: Options) -> None:
        super().__init__(switches)
        self._path = path
        self._options = options
        self._operation = "rerun" if options.is_rerun else "fork"
        self._salt = secrets.token_hex(4) if options.redraw else None

    def _begin(self, stack: ExitStack) -> Forking:
        options = self._options
        tape = stack.enter_context(answering(self._path))
        plan = self._plan(tape)
        if options.writes != "allow" and not options.rerun_tools:
            from tracefork_core.run.untaped import check_tools  # Loaded here: it takes long.

            check_tools(tape, plan.until)
        masking = masking_of(tape, options.mask)
        path = options.to or _free(self._path, "rerun" if plan.is_rerun else plan.at)
        if path.absolute().parent != self._path.absolute().parent:
            raise UsageError(
                f"tracefork: a branch lies beside its parent: not {path}, but in "
                f"{self._path.absolute().parent}. `tracefork pack` makes one file of both."
            )
        self._tools = NamedTools.on(tape)
        environment = environment_under(masking, self._tools)
        try:
            self._writer = TapeWriter(
                path,
                environment,
                overwrite=options.overwrite,
                mode=tape.mode,
                key=tape.key,
                parent=tape,
                at=plan.at,
            )
        except UnwritableError as error:
            raise UnwritableError(
                f"{error} A branch lies beside its parent: copy {self._path.name} to a folder that "
                "can be written, and fork it there."
            ) from error
        stack.callback(self._discard_unless_switched_on)
        self._described = _described(plan, tape.branch)
        self._writer.note(BRANCH, aside=self._described)
        self._session = Session(
            source=tape,
            sink=self._writer,
            masking=masking,
            matchers=options.match,
            plan=plan,
            strict=True,  # What cannot be recorded of it is paid for, and nobody would ever see it.
        )
        self._session.suspects.append(lambda: other_versions(tape))
        chance = Chance(self._session, tape.chance, forked=True)
        self._run = Forking(path, tape, plan.at, chance.nondet, leaks=self._leaks)
        stack.callback(self._take_stock)
        self._write(stack, environment, "count", chance, tape)
        return self._run

    def _plan(self, tape: Tape) -> Plan:
        options = self._options
        changes = {number_of(tape, place): change for place, change in options.changes.items()}
        for n, change in changes.items():
            if isinstance(change, Fail) and change.kind and 0 <= n < len(tape.exchanges):
                _check_failure(tape.exchanges[n], change.kind)
        changes |= {number_of(tape, place): Keep() for place in options.hold}
        at = start_of(tape, options.at)
        until = None if options.until is None else number_of(tape, options.until)
        return checked(
            Plan(
                at,
                changes,
                options.writes,
                until,
                options.calls,
                options.tail,
                self._salt,
                options.reuse,
                _names(options.reads),
                options.is_rerun,
                options.before_live,
                options.onwards,
            ),
            tape.exchanges,
        )

    def _take_stock(self) -> None:
        fork, run = self._session.fork, self._run
        assert fork is not None
        run.overspent = fork.overspent
        run.given, run.live = fork.counts[GIVEN], fork.counts[""]
        run.replayed = self._session.asked - run.given - run.live

    def _discard_unless_switched_on(self) -> None:
        if not self._is_switched_on:
            self._writer.discard()

    def _finish(self, error: BaseException | None) -> TraceforkError | None:
        session = self._session
        # An agent that ended before it asked for all that comes before the fork is another one.
        verdict = session.poison or session.left_over
        unforked = isinstance(verdict, DivergenceError | UsageError) and not self._run.live
        if session.poison is None and isinstance(error, UsageError):
            verdict = None  # Ours too, and it says more: that is why nothing was asked for.
        if unforked and session.sink.broken is None:
            self._writer.discard()  # Nothing was forked, and nothing was paid for.
            return verdict
        source = session.answers.source if session.answers else None
        is_travelled = source is not None and source.is_travelled
        described = msgspec.structs.replace(
            self._described,
            skipped=sorted(source.waiting) if source is not None and is_travelled else [],
            stop=session.fork.stop if session.fork is not None else None,
        )
        if described != self._described:
            self._writer.note(BRANCH, aside=described)
        self._run.stop = described.stop
        closed = self._closed(verdict or error)
        if isinstance(closed, TapeError):
            return closed
        self._run.receipt = closed
        return verdict

    def _facts(self, work: Work) -> dict[str, Value]:
        run = self._run
        facts = {
            **super()._facts(work),
            "tracefork.fork.at": run.at,
            "tracefork.exchanges.replayed": run.replayed,
            "tracefork.exchanges.given": run.given,
        }
        return facts | ({"tracefork.digest": run.digest} if run.digest else {})


def _free(parent: Path, at: int | str) -> Path:
    """Return a name beside the parent that is not taken."""
    for i in itertools.count(1):
        name = parent.with_name(f"{parent.stem}.{at}{f'-{i}' if i > 1 else ''}{parent.suffix}")
        if not name.exists():
            return name
    raise AssertionError


def _described(plan: Plan, parent: Branch | None) -> Branch:
    changes = [
        Change(n, type(change).__name__.lower(), described(change))
        for n, change in sorted(plan.changes.items())
    ]
    tail = described(plan.tail) if plan.tail else {}
    tail |= {"onwards": True} if plan.onwards else {}
    return Branch(
        plan.at,
        changes,
        plan.writes,
        tail,
        plan.salt,
        plan.reuse,
        anew=salts_of(parent, plan),
        reads=sorted(plan.reads),
        is_rerun=plan.is_rerun,
    )


def _names(reads: Collection[str]) -> frozenset[str]:
    if isinstance(reads, str):
        raise UsageError("tracefork: reads takes a list of names of tools, not one text.")
    return frozenset(reads)


def fork(
    path: str | Path,
    at: Place,
    replace: str | Intervention | None = None,
    *,
    change: Mapping[Place, Intervention] | None = None,
    hold: Collection[Place] = (),
    writes: Writes = "refuse",
    reads: Collection[str] = (),
    until: Place | None = None,
    calls: int | None = None,
    tail: Edit | None = None,
    onwards: bool = False,
    redraw: bool = False,
    reuse: bool = False,
    rerun_tools: bool = False,
    to: str | Path | None = None,
    overwrite: bool = False,
    ambient: bool = True,
    clock: bool = True,
    entropy: bool = True,
    subprocesses: bool = True,
    match: Sequence[str] = (),
    mask: Sequence[str] = (),
    boundary: Boundary | None = None,
    scope: Covers = "context",
) -> Scope[Forking]:
    """Run what is inside again: as recorded up to a point, changed there, and live from there on.

    What comes before the fork point is answered from the tape, for nothing, and has to be asked as
    it was recorded. The rest goes onto a branch: a tape that replays by itself, and stores only
    what is its own.

    Args:
        path: the tape to fork.
        at: the fork point: the number of an exchange, or a step by its id or name ("plan",
            "task:plan", the second "plan:2", where it got its answer "task:plan:answer").
        replace: what happens at the fork point: a text that the model says instead, or any
            intervention. None asks once more, live.
        change: interventions at other exchanges after the fork point, each in the place of the
            recorded exchange of that number (see `session.forking`).
        hold: exchanges after the fork point that are answered as recorded whatever is asked.
        writes: what becomes of a live exchange that may change the world, which is each that is
            neither a call of a model, nor a GET, nor declared otherwise: "refuse" stops the run
            with a WriteError, "stub" answers as recorded where something was, "allow" does it.
        reads: names of tools that only read ("find", or "github/find" of one server), so that they
            may run again.
        until: the block is over once this exchange, or what is in its place, was answered: what is
            asked after it raises, and nothing of that comes out of the block.
        calls: the block is over before it makes more live calls than this.
        tail: how models are asked after the fork point, where nothing else is changed: with another
            model, at another temperature.
        onwards: the model, the temperature and the system prompt of an `Edit` at the fork point
            hold for later questions too, where the same model is asked and the same system prompt
            given; else they change that question alone.
        redraw: after the fork point, read the real clock and draw new ids and random values; else
            they go on as recorded, so that nothing but the change makes a difference.
        reuse: after the fork point, answer as recorded what is asked as it was recorded: only what
            the change made a difference to is live.
        rerun_tools: run again the tools that are not on the tape, also where `writes` is not
            "allow".
        to: where the branch goes, beside its parent; by default `run.7.tape` for a fork at 7.
        overwrite: replace a tape of that name.
        ambient: as for `record`.
        clock: as for `record`.
        entropy: as for `record`.
        subprocesses: as for `record`.
        match: as for `replay`, for what comes before the fork point.
        mask: as for `replay`.
        boundary: as for `record`.
        scope: as for `record`.

    Raises:
        UsageError: there is no such tape, place or change; the branch exists; a tool ran that is
            not on the tape, and would run again.
        DivergenceError: what comes before the fork point was not asked as recorded.
        WriteError: the fork would change the world a second time.
        TapeError: the tape is damaged, or the branch cannot be written.
    """
    changes = dict(change or {})
    if replace is not None:
        changes[at] = Replace(replace) if isinstance(replace, str) else replace
    options = Options(
        at=at,
        changes=changes,
        hold=hold,
        writes=writes,
        reads=reads,
        until=until,
        calls=calls,
        tail=tail,
        onwards=onwards,
        redraw=redraw,
        reuse=reuse,
        rerun_tools=rerun_tools,
        to=None if to is None else Path(to),
        overwrite=overwrite,
        match=match,
        mask=mask,
    )
    switches = Switches(ambient, clock, entropy, subprocesses, boundary, scope)
    return ForkScope(Path(path), switches, options)


def _check_failure(exchange: Exchange, kind: str) -> None:
    """Check that an exchange can fail with an error of its service, or an exception, of this name.

    Raises:
        UsageError: there is none.
    """
    from tracefork_core.providers import format_of  # It takes long to load.

    own, seam = format_of(exchange.method, exchange.url), exchange.aside.seam
    if own is None or own.status_of(kind) is None:
        if (check_exception := getattr(own, "check_exception", None)) is not None:
            check_exception(seam, kind)
        check_kind(seam, kind)
