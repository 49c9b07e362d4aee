"""Hear an engine: have carried out what it asks for, unless the journal has that already."""

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
from tracefork_core.blaming.trials.trial import Job, ModelOracle
from tracefork_core.blaming.trials.trial_journal import Journal
from tracefork_core.errors import TapeError

_GOOD_ENDS = 8


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a blame is.

    Attributes:
        standing: the phase, the likeliest unit so far and how sure that is; None before the first.
        forks: runs that were made.
        calls: live calls.
        usd: what they cost, and those of the oracle, as far as prices are known.
        left: dollars left of the budget, None without such a budget.
        share: of the budget that is used up, None without one.
        seconds: since it began.
    """

    standing: Standing | None
    forks: int
    calls: int
    usd: float
    left: float | None
    share: float | None
    seconds: float


class Runner:
    """Hears an engine: has carried out what it asks for, unless the journal has that already.

    Attributes:
        unfinished: what forks spent that died, and could not be paid for again.
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
        """Answer an engine until it has a result."""
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
        """Take in where the engine stands."""
        self._standing = standing
        self._journal.stands(standing)
        self._tell()

    def _carried_out(self, probes: Sequence[Probe]) -> list[Trial]:
        first = self._asked
        self._asked += len(probes)
        numbered = list(enumerate(probes, first))
        known = [trial for number, _ in numbered if (trial := self._journal.trials.get(number))]
        if any(trial.probe != probes[trial.number - first] for trial in known):
            raise TapeError(f"tracefork: {self._journal.path} is damaged: not what was asked for.")
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
        """Return how many calls of the oracle a batch needs: runs held whole end alike."""
        if self._model_oracle is None:
            return 0
        ends = [probe for probe in probes if probe.until is None and self._purse.live(probe)]
        whole = {probe for probe in probes if probe.until is None} - {*ends}
        return (len(ends) + len(whole)) * (1 + again)

    def _regrades(self, before: int) -> int:
        """Return how often good ends are graded again in the batch that begins with a trial."""
        trials = self._journal.trials.items()
        done = sum(
            n < before and bool(trial.grades) and trial.probe.purpose != "replay"
            for n, trial in trials
        )
        return self._job.regrades if done < _GOOD_ENDS else 0

    def _branch(self, number: int) -> Path:
        return Path(self._job.tape).with_name(f"t{number}.tape")

    def _job_of(self, number: int, probe: Probe, again: int, **limits: int | None) -> Job:
        return msgspec.structs.replace(
            self._job,
            number=number,
            probe=probe,
            branch=self._branch(number).name,
            sources={trial: f"t{trial}.tape" for _, trial in probe.given},
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
