"""Why steps parallel to the tested one are live: see docs/explanation/blame.md, *What is live*."""

from __future__ import annotations

from random import Random

import pytest

from tracefork_core.bench.planted_agent import THRESHOLD, Recorded, fault, graded, planted

STEPS = 8
BRANCHES = (range(4), range(4, STEPS))
"""Two parallel branches: no step of one depends on a step of the other."""


def recorded(*bad: int) -> Recorded:
    """Return a run that each of these steps makes fail alone."""
    steps = {place: fault(1 << i, 0.15) for i, place in enumerate(bad)}
    fails = graded(2 ** len(bad), bool)
    program = planted(STEPS, Random(0), fails, steps)
    return Recorded(program, tuple(int(place in bad) for place in range(STEPS)))


def effect_with_the_other_branch_held(run: Recorded, step: int) -> float:
    """Return the effect of keeping a step if only steps that may depend on it are live."""
    mine = next(branch for branch in BRANCHES if step in branch)
    beside = {place for branch in BRANCHES if branch is not mine for place in branch}
    before = {place for place in mine if place < step}
    return run.risk(beside | before | {step}) - run.risk(beside | before)


@pytest.mark.parametrize("first", BRANCHES[0])
@pytest.mark.parametrize("second", BRANCHES[1])
def test_faults_in_parallel_branches_hide_each_other_if_held(first: int, second: int) -> None:
    """No step has an effect then. With all later steps live, the first fault has one."""
    run = recorded(first, second)
    for step in range(STEPS):
        assert effect_with_the_other_branch_held(run, step) == pytest.approx(0, abs=1e-9)
    assert run.decisive() == first
    assert run.responsibility()[first] > THRESHOLD


@pytest.mark.parametrize("place", range(STEPS))
def test_one_fault_is_found_whether_the_other_branch_is_held_or_live(place: int) -> None:
    """The control: nothing is hidden if only one branch failed."""
    run = recorded(place)
    assert effect_with_the_other_branch_held(run, place) > THRESHOLD
    assert run.decisive() == place
