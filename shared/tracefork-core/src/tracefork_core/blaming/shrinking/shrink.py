"""Shrink a failed run: leave out what it does not need to fail.

Model calls are left out first: the agent gets the recorded answers that are left. Without a budget
that is all, since a held last answer would fail whatever the model read before. With a budget, one
call is live in every candidate, and messages, tools and lines are then left out of it. The result
is a branch of the recording by the unchanged agent, so it replays like any other branch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from tracefork_core.blaming.engine.probe import Probe
from tracefork_core.blaming.shrinking.attempts import Attempts, BudgetEndedError, asked_in
from tracefork_core.blaming.shrinking.ddmin import ddmin
from tracefork_core.blaming.shrinking.question import Asking, Line
from tracefork_core.blaming.shrinking.result import Shrinking, Shrunk
from tracefork_core.blaming.shrinking.turns import model_calls, place_of, shortened
from tracefork_core.blaming.trials.budget import Budget
from tracefork_core.blaming.trials.pool import Pool
from tracefork_core.blaming.trials.trial import Agent, Job, ModelOracle, Oracle, check_functions
from tracefork_core.blaming.trials.units import Run
from tracefork_core.errors import UnwritableError, UsageError
from tracefork_core.run.fork_point import number_of
from tracefork_core.run.replay import answering, masking_of
from tracefork_core.run.untaped import check_tools
from tracefork_core.session.interventions import Edit, Intervention, Resample
from tracefork_core.session.side_effects import Writes
from tracefork_core.tape import Exchange
from tracefork_core.tape.branches import parent_name
from tracefork_core.tape.creation import scratch_folder
from tracefork_core.tape.rewrite import lay_beside

Tell = Callable[[str, int, int, Attempts], object]
"""Called before each candidate: kind of unit, units kept so far, tests left, all attempts."""
Unit = TypeVar("Unit")


def shrink(
    path: str | Path,
    agent: Agent,
    oracle: Oracle,
    to: str | Path,
    *,
    at: str | int | None = None,
    budget: Budget | None = None,
    confirm: int = 3,
    fresh: bool = False,
    writes: Writes = "refuse",
    reads: Collection[str] = (),
    rerun_tools: bool = False,
    mask: Sequence[str] = (),
    overwrite: bool = False,
    tell: Tell = lambda kind, kept, left, attempts: None,
) -> Shrinking:
    """Find a smallest branch of a run that still fails, and write it.

    Args:
        path: tape of a run that failed.
        agent: as for `blame`.
        oracle: as for `blame`.
        to: the branch to write, beside the tape.
        at: the call whose messages, tools and lines are left out; by default the last that is kept.
        budget: limits of the live calls; None for no live call.
        confirm: how many times the run must fail with a live candidate, and with the result.
        fresh: as for `blame`.
        writes: as for `fork`.
        reads: as for `fork`.
        rerun_tools: as for `fork`.
        mask: as for `fork`.
        overwrite: replace a tape of that name.
        tell: called before each candidate.

    Raises:
        UsageError: the recording does not fail, cannot be graded, or holds no model call; the
            branch exists or would not lie beside the tape.
        TapeError: the tape is corrupt, or the branch cannot be written.
    """
    check_functions(agent, oracle)
    path, target = Path(path), Path(to)
    _check_target(path, target, overwrite=overwrite)
    with answering(path) as tape:
        parent_name(path)
        masking_of(tape, mask)
        run, calls = Run.of(tape), model_calls(tape)
        if writes != "allow" and not rerun_tools:
            check_tools(tape)
        pinned = None if at is None else number_of(tape, at)
        if not calls or (pinned is not None and pinned not in {call.n for call in calls}):
            what = "has no model call" if not calls else f"calls no model at {at}"
            raise UsageError(f"tracefork: cannot shrink {path}: it {what}.")
        scratch = scratch_folder(path, "shrink")
        try:
            job = Job(
                number=0,
                probe=Probe(frozenset(range(len(run.units))), purpose="shrink"),
                tape=str(lay_beside(path, scratch)),
                branch="",
                sources={},
                crash=run.crash,
                writes=writes,
                reads=tuple(reads),
                mask=tuple(mask),
            )
            if isinstance(oracle, ModelOracle):
                oracle = oracle.placed(scratch)
            with Pool(agent, oracle, fresh=fresh) as pool:
                attempts = Attempts(job, pool, budget or Budget(), confirm)
                result = _Search(calls, pinned, attempts, tell).result(is_live=budget is not None)
            return _written(result, attempts.best, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _check_target(path: Path, target: Path, *, overwrite: bool) -> None:
    if target.absolute().parent != path.absolute().parent:
        raise UsageError(
            f"tracefork: a branch lies beside its parent: not {target}, but in "
            f"{path.absolute().parent}. `tracefork pack` makes one file of both."
        )
    if target.absolute() == path.absolute():
        raise UsageError(f"tracefork: {target} is the recording itself. Choose another -o.")
    if target.exists() and not overwrite:
        raise UsageError(
            f"tracefork: {target} already exists. Use --overwrite to replace it, or -o to choose "
            "another name."
        )


def _written(result: Shrinking, best: Path | None, target: Path) -> Shrinking:
    if best is None or all(part.kept == part.before for part in result.parts):
        return result
    try:
        shutil.copyfile(best, target)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise UnwritableError(f"tracefork: cannot write {target}: {error.strerror}.") from error
    return msgspec.structs.replace(result, branch=str(target))


class _Search:
    def __init__(
        self, calls: list[Exchange], pinned: int | None, attempts: Attempts, tell: Tell
    ) -> None:
        self._calls = calls
        self._pinned = pinned
        self._attempts = attempts
        self._tell = tell
        self._kept = [call.n for call in calls]
        self._parts: list[Shrunk] = []
        self._doubt: str | None = None
        self._request: str | None = None

    def result(self, *, is_live: bool) -> Shrinking:
        attempts, stopped, is_interrupted = self._attempts, None, False
        try:
            self._doubt = attempts.grade_recording()
            if self._doubt is None:
                if is_live:
                    self._shrink_live()
                else:
                    self._shrink_turns()
        except BudgetEndedError as error:
            stopped = str(error)
        except KeyboardInterrupt:
            stopped, is_interrupted = "interrupted by Ctrl-C", True
        return Shrinking(
            branch=None,
            parts=tuple(self._parts),
            forks=attempts.trials,
            calls=attempts.calls,
            usd=attempts.usd,
            seconds=attempts.seconds,
            stopped=stopped,
            is_interrupted=is_interrupted,
            doubt=self._doubt,
            request=self._request,
            reasons=tuple(attempts.reasons),
        )

    def _shrink_turns(self) -> None:
        """Leave out model calls; every answer is recorded, and nothing is asked live."""

        def fails(kept: list[int]) -> bool:
            if not kept or (self._pinned is not None and self._pinned not in kept):
                return False
            changes = shortened(self._calls, kept)
            return self._attempts.fails(changes) if changes else self._untried(kept)

        self._kept = self._smallest("model calls", self._kept, fails)
        changes = shortened(self._calls, self._kept)
        if changes and not self._attempts.fails(changes, again=True):
            self._doubt = "the smallest run that was found did not fail each time"

    def _untried(self, kept: list[int]) -> bool:
        """Count a candidate that no fork can make, because no recorded answer takes another place.

        So it is not known whether the run fails without those calls.
        """
        self._attempts.undecided += len(kept) < len(self._calls)
        return False

    def _shrink_live(self) -> None:
        """Leave out model calls, then parts of one call; that call is always answered live."""
        number = self._kept[-1] if self._pinned is None else self._pinned
        call = next(call for call in self._calls if call.n == number)

        def fails(kept: list[int], change: Intervention | None = None) -> bool:
            if number not in kept:
                return False
            answers = shortened(self._calls, kept)
            if not answers and len(kept) < len(self._calls):
                return self._untried(kept)
            place = place_of(self._calls, kept, call)
            changes = {**answers, place: change or Resample()}
            return self._attempts.fails(changes, is_live=True)

        if not fails(self._kept):
            self._doubt = f"asked again live, exchange {number} does not make the run fail"
            return
        self._kept = self._smallest("model calls", self._kept, fails)
        assert self._attempts.best is not None
        body = asked_in(self._attempts.best, place_of(self._calls, self._kept, call))
        asking = None if body is None else Asking.read(call, body)
        if asking is None:
            self._doubt = f"the messages of exchange {number} cannot be read"
            return
        self._shrink_question(asking, lambda edit: fails(self._kept, edit))

    def _shrink_question(self, asking: Asking, fails: Callable[[Edit], bool]) -> None:
        groups, tools = asking.groups, asking.tools
        self._request = asking.sent(asking.edit(groups, tools))

        def asks(groups: list[tuple[int, ...]], tools: list[str], gone: Collection[Line]) -> bool:
            if not groups or not fails(edit := asking.edit(groups, tools, gone)):
                return False
            self._request = asking.sent(edit)
            return True

        groups = self._smallest("messages", groups, lambda kept: asks(kept, tools, ()))
        tools = self._smallest("tools", tools, lambda kept: asks(groups, kept, ()))
        lines = asking.lines(groups)
        self._smallest("lines", lines, lambda kept: asks(groups, tools, {*lines} - {*kept}))

    def _smallest(
        self, kind: str, units: list[Unit], fails: Callable[[list[Unit]], bool]
    ) -> list[Unit]:
        """Shrink one kind of unit, and note how far, also if the search is stopped."""
        attempts, best, is_minimal = self._attempts, units, False
        undecided = attempts.undecided

        def noted(kept: list[Unit]) -> bool:
            nonlocal best
            if failed := fails(kept):
                best = kept
            return failed

        def tell(kept: int, left: int) -> None:
            self._tell(kind, kept, left, attempts)

        try:
            best = ddmin(units, noted, tell)
            is_minimal = True
        finally:
            self._parts.append(
                Shrunk(
                    kind=kind,
                    before=len(units),
                    kept=len(best),
                    minimal=is_minimal,
                    undecided=attempts.undecided - undecided,
                )
            )
        return best
