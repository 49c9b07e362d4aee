from __future__ import annotations

import pytest

from tracefork_core.bench.cases import CASES, SIZES, Instance
from tracefork_core.bench.planted_agent import THRESHOLD, Recorded

SEEDS = range(4)
ENOUGH = 0.7
"""A set of held steps is sufficient if the run, live in the rest, fails at least this often."""


def instances(case: str) -> list[Instance]:
    """Return a few runs of a case at every size."""
    found = CASES[case]
    return [found.instance(size, seed) for size in found.sizes(SIZES) for seed in SEEDS]


def sufficiency(run: Recorded) -> list[float]:
    """Return how much holding each step alone, with all others live, raises the risk."""
    baseline = run.risk(())
    return [run.risk((step,)) - baseline for step in range(len(run))]


def necessity(run: Recorded) -> list[float]:
    """Return how much drawing each step again, with all others held, lowers the risk."""
    everything = frozenset(range(len(run)))
    whole = run.risk(everything)
    return [whole - run.risk(everything - {step}) for step in range(len(run))]


@pytest.mark.parametrize("case", CASES)
def test_the_planted_step_has_the_largest_exact_responsibility(case: str) -> None:
    """This holds for every case, size and seed."""
    for one in instances(case):
        assert one.recorded.decisive() in one.truth.decisive


@pytest.mark.parametrize("case", CASES)
def test_a_seed_determines_the_run(case: str) -> None:
    """Other seeds give other runs, except in scripted cases."""
    size = CASES[case].size or 16
    assert CASES[case].instance(size, 5) == CASES[case].instance(size, 5)
    drawn = {CASES[case].instance(size, seed).recorded.responses for seed in range(8)}
    assert len(drawn) > 1 or case.startswith("fixture")


@pytest.mark.parametrize("case", sorted(set(CASES) - {"flaky", "coin"}))
def test_the_recorded_failure_happens_again(case: str) -> None:
    """With every response held, the run fails with a probability above 0.9."""
    assert all(one.recorded.risk(range(one.size)) > 0.9 for one in instances(case))


def test_a_flaky_failure_does_not_happen_again() -> None:
    """The control: a run that was graded wrongly passes when it is graded again."""
    assert all(one.recorded.risk(range(one.size)) < 0.1 for one in instances("flaky"))


@pytest.mark.parametrize("case", ["and-2", "and-3", "fixture-joint"])
def test_joint_causes_are_minimal_and_enough(case: str) -> None:
    """Held together they fail a fresh run; without one of them it mostly passes."""
    for one in instances(case):
        units = one.truth.answers[0].units
        assert one.recorded.risk(units) > ENOUGH
        assert all(one.recorded.risk(units - {unit}) < ENOUGH for unit in units)


@pytest.mark.parametrize("case", ["echo", "delayed", "background", "recovery", "fixture-echo"])
def test_a_single_cause_is_enough_by_itself(case: str) -> None:
    """Holding the root alone fails a live run; no other planted step is needed."""
    for one in instances(case):
        assert one.recorded.risk(one.truth.answers[0].units) > ENOUGH


@pytest.mark.parametrize("case", ["or", "mixed"])
def test_no_cause_of_an_overdetermined_failure_is_needed(case: str) -> None:
    """Drawing one of them again has no effect while the others are held."""
    for one in instances(case):
        needed = necessity(one.recorded)
        assert max(abs(needed[unit]) for unit in one.truth.answers[0].units) < 1e-9


def test_a_preempting_cause_is_needed_and_repairing_it_does_not_save() -> None:
    """With all others held it is needed; with a live rest the backup fails the run anyway."""
    for one in instances("preemption"):
        (unit,) = one.truth.answers[0].units
        assert necessity(one.recorded)[unit] > THRESHOLD
        assert one.recorded.risk(range(unit)) > 0.9


def test_no_step_is_needed_in_cases_without_a_culprit() -> None:
    """No step changes the risk by 0.2 or more."""
    for case in ("hopeless", "coin", "cold", "drift"):
        for one in instances(case):
            assert max(one.recorded.responsibility()) < 0.2
            assert max(necessity(one.recorded)) < 0.2


def test_an_innocent_symptom_has_no_effect_and_an_echo_does() -> None:
    """Forcing the echo alone fails a run; forcing the late symptom alone has no effect."""
    for one in instances("echo"):
        (later,) = one.truth.answers[0].mediators
        assert sufficiency(one.recorded)[later] > THRESHOLD
    for one in instances("delayed"):
        (root,) = one.truth.answers[0].units
        others = [x for step, x in enumerate(sufficiency(one.recorded)) if step != root]
        assert max(map(abs, others)) < 1e-9
