"""What an engine asks for is carried out: how often ends are graded, and paid for."""

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
    """A journal that is in no file."""

    path = Path("journal")

    def __init__(self) -> None:
        self.trials: dict[int, Trial] = {}

    def add(self, trial: Trial) -> None:
        """Note a trial."""
        self.trials[trial.number] = trial


class Forks:
    """Forks that all end well; what they were told to do is kept."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def run(self, jobs: Sequence[Job]) -> Iterator[Trial]:
        """Carry jobs out."""
        for job in jobs:
            self.jobs.append(job)
            yield Trial(job.number, job.probe, failed=False, grades=(False,) * job.regrades)


class Asking:
    """An oracle that asks a model, and has not yet."""

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
    """Return the forks that an engine had run which asked for these, one batch after another."""

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


def test_so_many_good_ends_are_graded_again(tmp_path: Path) -> None:
    """Eight, and none of a batch that begins when there are as many."""
    forks = heard(tmp_path, *[[FRESH]] * 10, regrades=3)
    assert [job.regrades for job in forks.jobs] == [3] * 8 + [0, 0]


def test_a_run_that_is_held_whole_is_none_of_them(tmp_path: Path) -> None:
    """It is graded to see whether the recorded end comes about again."""
    replayed = Probe(frozenset({0}), purpose="replay")
    forks = heard(tmp_path, [replayed], *[[FRESH]] * 9, regrades=3)
    assert [job.regrades for job in forks.jobs] == [3] * 9 + [0]


@pytest.mark.parametrize(
    ("batch", "grades"),
    [
        ([FRESH] * 3, 3),
        ([FRESH, Probe(frozenset(), until=0)], 1),  # What stops after a unit has no end.
        ([Probe(frozenset({0}))] * 3, 1),  # Runs that are held whole end alike.
        ([Probe(frozenset({0}), until=0)], 0),
    ],
)
def test_the_oracle_may_ask_as_often_as_ends_need(
    tmp_path: Path, batch: list[Probe], grades: int
) -> None:
    """Each of them once, and twice more where it is not understood."""
    forks = heard(tmp_path, batch, oracle=Asking())
    assert {job.grading for job in forks.jobs} == {3 * grades}
