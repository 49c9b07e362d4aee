"""Run the probes the engine requests, skipping those already in the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tracefork_core.blaming.engine.evidence import Standing
from tracefork_core.blaming.engine.probe import Exhausted, Probe, Trial
from tracefork_core.blaming.engine.result import Result
from tracefork_core.blaming.trials.budget import Pacer, Purse
from tracefork_core.blaming.trials.pool import Pool
from tracefork_core.blaming.trials.spending import Spent, lost_with
from tracefork_core.blaming.trials.trial import Job, ModelOracle, branch_name
from tracefork_core.blaming.trials.trial_journal import Journal
from tracefork_core.errors import TapeError

_GOOD_ENDS = 8


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a blame.

    Attributes:
        standing: the phase, the likeliest unit so far and its probability; None before the first.
        forks: number of runs so far.
        calls: number of live calls so far, without those of the oracle.
        usd: dollars spent so far, including those of the oracle, as far as prices are known.
        left: dollars left of the budget; None without a budget in dollars.
        share: share of the budget that is used up, 0 to 1; None without a budget.
        seconds: time since the blame started.
    """

    standing: Standing | None
    forks: int
    calls: int
    usd: float
    left: float | None
    share: float | None
    seconds: float


class Runner:
    """Runs the probes the engine requests, skipping those already in the journal.

    Attributes:
        unfinished: what forks spent that died and that the budget could not pay for again.
    """

    def __init__(
        self,
        job: Job,
        oracle: object,
        pool: Pool,
        journal: Journal,
        purse: Purse,
        pacer: Pacer,
        watch: Callable[[Progress], None],
    ) -> None:
        self._job = job
        self._model_oracle = oracle if isinstance(oracle, ModelOracle) else None
        self._graded: dict[str, list[Spent]] = {}
        self._pool = pool
        self._journal = journal
        self._purse = purse
        self._pacer = pacer
        self._watch = watch
        self._standing: Standing | None = None
        self.unfinished: Sequence[Spent] = ()
        self._asked = 0
        self._began = time.monotonic()

    def run(self, asking: Generator[list[Probe], list[Trial], Result]) -> Result:
        """Run the probes of an engine until it returns its result."""
        try:
            probes = next(asking)
            while True:
                try:
                    trials = self._carried_out(probes)
                except Exhausted as exhausted:
                    probes = asking.throw(exhausted)
                else:
                    probes = asking.send(trials)
        except StopIteration as stop:
            result: Result = stop.value
            return result

    def stands(self, standing: Standing) -> None:
        """Journal and report the progress of the engine."""
        self._standing = standing
        self._journal.stands(standing)
        self._tell()

    def _carried_out(self, probes: Sequence[Probe]) -> list[Trial]:
        first = self._asked
        self._asked += len(probes)
        numbered = list(enumerate(probes, first))
        known = [trial for number, _ in numbered if (trial := self._journal.trials.get(number))]
        if any(trial.probe != probes[trial.number - first] for trial in known):
            raise TapeError(f"tracefork: {self._journal.path} is corrupt: it has other probes.")
        for trial in known:
            self._purse.add(trial)
        missing = [(n, probe) for n, probe in numbered if n not in self._journal.trials]
        lost = [lost_with(self._branch(number)) for number, _ in missing]
        again, batch = self._regrades(first), [probe for _, probe in missing]
        allowed = self._purse.limits(batch, lost, self._grades(batch, again))
        if allowed is None:
            self.unfinished = lost
            raise Exhausted(known)
        jobs = [
            self._job_of(n, probe, again, calls=limit, lost=before.calls, grading=allowed.grading)
            for (n, probe), limit, before in zip(missing, allowed.calls, lost, strict=True)
        ]
        while jobs:
            count = self._pacer.take([self._purse.live(job.probe) for job in jobs])
            for trial in self._pool.run(jobs[:count]):
                self._journal.add(trial)
                self._purse.add(trial)
                self._pacer.made(trial.calls)
                self._tell()
            jobs = jobs[count:]
        if self._model_oracle is not None:
            self._purse.grading = self._model_oracle.spent(self._graded)
        return [self._journal.trials[number] for number, _ in numbered]

    def _grades(self, probes: Sequence[Probe], again: int) -> int:
        """Return how many oracle calls a batch needs; runs held whole share one outcome."""
        if self._model_oracle is None:
            return 0
        ends = [probe for probe in probes if probe.until is None and self._purse.live(probe)]
        whole = {probe for probe in probes if probe.until is None} - {*ends}
        return (len(ends) + len(whole)) * (1 + again)

    def _regrades(self, before: int) -> int:
        """Return how many times to regrade good outcomes in the batch that starts at a number."""
        trials = self._journal.trials.items()
        done = sum(
            n < before and bool(trial.grades) and trial.probe.purpose != "replay"
            for n, trial in trials
        )
        return self._job.regrades if done < _GOOD_ENDS else 0

    def _branch(self, number: int) -> Path:
        return Path(self._job.tape).with_name(branch_name(self._job.tape, number))

    def _job_of(self, number: int, probe: Probe, again: int, **limits: int | None) -> Job:
        return msgspec.structs.replace(
            self._job,
            number=number,
            probe=probe,
            branch=self._branch(number).name,
            sources={trial: self._branch(trial).name for _, trial in probe.given},
            regrades=again,
            **limits,
        )

    def _tell(self) -> None:
        purse, limit = self._purse, self._purse.budget.usd
        self._watch(
            Progress(
                self._standing,
                len(self._journal.trials),
                purse.spent_calls,
                purse.all_usd,
                None if limit is None else limit - purse.all_usd,
                purse.share,
                time.monotonic() - self._began,
            )
        )
