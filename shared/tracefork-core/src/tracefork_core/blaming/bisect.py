"""Bisect a deterministic failure: find the step that made the run fail in as few forks as possible.

This is `git bisect` over the exchanges of a run. If keeping more exchanges can only make the run
worse, log2(n) forks find the first position that fails. If outcomes are random, bisection finds one
of several such positions; use `blame` there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from tracefork_core.blaming.engine.probe import Probe, Trial
from tracefork_core.blaming.trials.pool import Pool
from tracefork_core.blaming.trials.trial import (
    Agent,
    Job,
    ModelOracle,
    Oracle,
    branch_name,
    check_functions,
)
from tracefork_core.blaming.trials.units import Run, UnitName
from tracefork_core.errors import UsageError
from tracefork_core.run.replay import answering, masking_of
from tracefork_core.run.untaped import check_tools
from tracefork_core.session.interventions import Edit
from tracefork_core.session.side_effects import Writes
from tracefork_core.tape.branches import parent_name
from tracefork_core.tape.creation import scratch_folder
from tracefork_core.tape.rewrite import lay_beside


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a bisection.

    Attributes:
        unit: the unit that makes the run fail when it is kept; None if a fresh run fails as well.
        first: the first unit that may be the one; differs from `unit` only if positions between
            them could not be graded. None if `unit` is None.
        names: the name of each unit.
        forks: number of forks, including the two with all and with no exchanges kept.
        calls: number of live calls.
        skipped: positions that could not be graded, as numbers of kept exchanges.
    """

    unit: int | None
    first: int | None
    names: tuple[UnitName, ...]
    forks: int
    calls: int
    skipped: tuple[int, ...] = ()


def bisect(
    path: str | Path,
    agent: Agent,
    oracle: Oracle,
    *,
    fresh: bool = False,
    writes: Writes = "refuse",
    reads: Collection[str] = (),
    rerun_tools: bool = False,
    tail: Edit | None = None,
    mask: Sequence[str] = (),
    tell: Callable[[int, Trial], None] = lambda kept, trial: None,
) -> Bisected:
    """Find the step that made a run fail, by halving the range of exchanges that are kept.

    Args:
        path: tape of a run that failed.
        agent: as for `blame`.
        oracle: as for `blame`; if it raises an error, the position is skipped.
        fresh: as for `blame`.
        writes: as for `fork`.
        reads: as for `fork`.
        rerun_tools: as for `fork`.
        tail: as for `fork`.
        mask: as for `fork`.
        tell: called with each position that was tried, and its trial.

    Raises:
        UsageError: the recorded run passes, a run at either end cannot be graded, or each fork
            would run a tool again that is not on the tape.
        TapeError: the tape is corrupt.
    """
    check_functions(agent, oracle)
    path = Path(path)
    with answering(path) as tape:
        parent_name(path)  # Refuse now rather than in every fork.
        masking_of(tape, mask)
        run = Run.of(tape)
        if writes != "allow" and not rerun_tools:
            check_tools(tape)
    scratch = scratch_folder(path, "bisect")
    try:
        tape_copy = lay_beside(path, scratch)
        if isinstance(oracle, ModelOracle):
            oracle = oracle.placed(scratch)
        job = Job(
            number=0,
            probe=Probe(frozenset()),
            tape=str(tape_copy),
            branch="",
            sources={},
            crash=run.crash,
            writes=writes,
            reads=tuple(reads),
            tail=tail,
            mask=tuple(mask),
        )
        with Pool(agent, oracle, fresh=fresh) as pool:
            return _Halves(job, pool, run, tell).found()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Halves:
    def __init__(self, job: Job, pool: Pool, run: Run, tell: Callable[[int, Trial], None]) -> None:
        self._job = job
        self._pool = pool
        self._run = run
        self._tell = tell
        self._trials: dict[int, Trial] = {}

    def found(self) -> Bisected:
        size = len(self._run.units)
        if not self._fails(size, whole=True):
            raise UsageError(
                "tracefork: the recorded run passes, so there is nothing to bisect. The oracle "
                "(--oracle) decides which runs are good."
            )
        if self._fails(0, whole=True):
            return self._result(None, None)
        good, bad = 0, size
        while (kept := self._between(good, bad)) is not None:
            if self._fails(kept):
                bad = kept
            else:
                good = kept
        return self._result(bad - 1, good)

    def _between(self, good: int, bad: int) -> int | None:
        """Return the untried, gradable position nearest to the middle; None if there is none."""
        middle = (good + bad) / 2
        for kept in sorted(range(good + 1, bad), key=lambda kept: abs(kept - middle)):
            if kept not in self._trials and self._tried(kept).failed is not None:
                return kept
        return None

    def _fails(self, kept: int, *, whole: bool = False) -> bool:
        trial = self._tried(kept)
        if trial.failed is None and whole:
            raise UsageError(
                f"tracefork: with {kept} of {len(self._run.units)} exchanges kept, the run cannot "
                f"be graded: {trial.undefined}."
            )
        return bool(trial.failed)

    def _tried(self, kept: int) -> Trial:
        if kept not in self._trials:
            number = len(self._trials)
            job = msgspec.structs.replace(
                self._job,
                number=number,
                probe=Probe(frozenset(range(kept)), purpose="bisect"),
                branch=branch_name(self._job.tape, number),
            )
            (self._trials[kept],) = self._pool.run([job])
            self._tell(kept, self._trials[kept])
        return self._trials[kept]

    def _result(self, unit: int | None, first: int | None) -> Bisected:
        trials = self._trials
        return Bisected(
            unit=unit,
            first=first,
            names=self._run.units,
            forks=len(trials),
            calls=sum(trial.calls for trial in trials.values()),
            skipped=tuple(sorted(kept for kept, one in trials.items() if one.failed is None)),
        )
