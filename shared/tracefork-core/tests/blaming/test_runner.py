"""The runner decides how often outcomes are graded, and how many oracle calls a batch gets."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from tracefork_core.blaming.engine.probe import Probe, Trial
from tracefork_core.blaming.trials.budget import Budget, Pacer, Purse
from tracefork_core.blaming.trials.runner import Runner
from tracefork_core.blaming.trials.spending import Spending, Spent
from tracefork_core.blaming.trials.trial import Job, Oracle

FRESH = Probe(frozenset())


class Notes:
    """A journal in memory."""

    path = Path("journal")

    def __init__(self) -> None:
        self.trials: dict[int, Trial] = {}

    def add(self, trial: Trial) -> None:
        """Note a trial."""
        self.trials[trial.number] = trial


class Forks:
    """A pool whose forks all pass, and that keeps their jobs."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def run(self, jobs: Sequence[Job]) -> Iterator[Trial]:
        """Carry jobs out."""
        for job in jobs:
            self.jobs.append(job)
            yield Trial(job.number, job.probe, failed=False, grades=(False,) * job.regrades)


class Asking:
    """An oracle that calls a model, before its first call."""

    def placed(self, folder: Path) -> Oracle:
        """Be where it is."""
        raise NotImplementedError(folder)

    def capped(self, calls: int) -> Oracle:
        """Be asked so often."""
        raise NotImplementedError(calls)

    def spent(self, known: dict[str, list[Spent]]) -> Spending:
        """Say that it asked nothing."""
        assert known == {}
        return Spending(Spent(), Spent(1, 1, 0.01))


def heard(tmp_path: Path, *batches: list[Probe], oracle: object = None, regrades: int = 0) -> Forks:
    """Run batches of probes through a runner, and return the pool with its jobs."""

    def engine() -> Generator[list[Probe], list[Trial], Any]:
        for batch in batches:
            assert len((yield batch)) == len(batch)

    forks = Forks()
    job = Job(0, FRESH, str(tmp_path / "run.tape"), "", {}, regrades=regrades)
    purse = Purse(Budget(usd=100.0), [0.1], [10], Spending(Spent(), Spent(1, 1, 0.01)))
    runner = Runner(
        job, oracle, cast(Any, forks), cast(Any, Notes()), purse, Pacer(None), lambda _: None
    )
    runner.run(engine())
    return forks


def test_eight_good_outcomes_are_regraded(tmp_path: Path) -> None:
    """A batch that starts after the eighth is not regraded."""
    forks = heard(tmp_path, *[[FRESH]] * 10, regrades=3)
    assert [job.regrades for job in forks.jobs] == [3] * 8 + [0, 0]


def test_replays_do_not_count_as_regraded_good_outcomes(tmp_path: Path) -> None:
    """A run with all units held only checks that the recorded outcome recurs."""
    replayed = Probe(frozenset({0}), purpose="replay")
    forks = heard(tmp_path, [replayed], *[[FRESH]] * 9, regrades=3)
    assert [job.regrades for job in forks.jobs] == [3] * 9 + [0]


@pytest.mark.parametrize(
    ("batch", "grades"),
    [
        ([FRESH] * 3, 3),
        ([FRESH, Probe(frozenset(), until=0)], 1),  # A run that stops after a unit has no outcome.
        ([Probe(frozenset({0}))] * 3, 1),  # Runs with all units held share one outcome.
        ([Probe(frozenset({0}), until=0)], 0),
    ],
)
def test_the_oracle_gets_three_calls_per_outcome(
    tmp_path: Path, batch: list[Probe], grades: int
) -> None:
    """It gets one call, and two more if the first ones are refused."""
    forks = heard(tmp_path, batch, oracle=Asking())
    assert {job.grading for job in forks.jobs} == {3 * grades}
