from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import sqrt
from random import Random

import pytest

from tracefork_core.bench.cases import CASES
from tracefork_core.bench.planted_agent import Program, Recorded, Step, changes, responsibility
from tracefork_core.blaming.engine.shares import interaction

STATES, RESPONSES = 3, 3


def arbitrary(steps: int, seed: int) -> Recorded:
    """Return a run of an agent whose tables are drawn at random."""
    random = Random(seed)

    def policy() -> tuple[float, ...]:
        weights = [random.random() for _ in range(RESPONSES)]
        return tuple(weight / sum(weights) for weight in weights)

    def move() -> tuple[int, ...]:
        return tuple(random.randrange(STATES) for _ in range(RESPONSES))

    def step() -> Step:
        return Step(tuple(policy() for _ in range(STATES)), tuple(move() for _ in range(STATES)))

    fails = tuple(random.random() for _ in range(STATES))
    program = Program(tuple(step() for _ in range(steps)), fails)
    return Recorded(program, tuple(random.randrange(RESPONSES) for _ in range(steps)))


def enumerated(recorded: Recorded, held: frozenset[int]) -> float:
    """Return the risk as the sum over all paths."""
    program, total = recorded.program, 0.0
    for path in product(range(RESPONSES), repeat=len(program)):
        state, chance = 0, 1.0
        for number, (step, response) in enumerate(zip(program.steps, path, strict=True)):
            if number in held:
                chance *= response == recorded.responses[number]
            else:
                chance *= step.policy[state][response]
            state = step.move[state][response]
        total += chance * program.fails[state]
    return total


def subsets(size: int) -> Iterator[frozenset[int]]:
    """Yield every set of steps."""
    for bits in range(2**size):
        yield frozenset(step for step in range(size) if bits >> step & 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_the_risk_is_the_sum_over_all_paths(steps: int, seed: int) -> None:
    """For every set of held steps, the recursion agrees with an enumeration of the paths."""
    recorded = arbitrary(steps, seed)
    for held in subsets(steps):
        assert recorded.risk(held) == pytest.approx(enumerated(recorded, held), abs=1e-12)


@pytest.mark.parametrize("held", [(), (0,), (1, 3), (0, 1, 2, 3, 4)])
def test_runs_fail_as_often_as_the_risk_says(held: tuple[int, ...]) -> None:
    """20,000 simulated runs fail within four standard errors of the exact risk."""
    recorded, random, runs = arbitrary(5, 7), Random(1), 20_000
    forced = {step: recorded.responses[step] for step in held}
    fails = 0
    for _ in range(runs):
        _, state = recorded.program.run(random, forced)
        fails += recorded.program.graded(random, state)
    risk = recorded.risk(held)
    assert abs(fails / runs - risk) < 4 * sqrt(risk * (1 - risk) / runs)


def test_the_risk_depends_on_the_held_steps() -> None:
    """The control: different sets of held steps of one run have different risks."""
    recorded = arbitrary(5, 7)
    assert len({round(recorded.risk(held), 9) for held in subsets(5)}) > 20


def test_changes_of_the_curve_add_up_and_average_to_zero() -> None:
    """They sum to V(n) - V(0), and average to zero over the responses that a step draws."""
    recorded = arbitrary(4, 3)
    curve = recorded.curve()
    assert sum(changes(curve)) == pytest.approx(curve[-1] - curve[0])
    first = recorded.program.steps[0].policy[0]
    average = 0.0
    for response, chance in enumerate(first):
        other = Recorded(recorded.program, (response, *recorded.responses[1:]))
        average += chance * changes(other.curve())[0]
    assert average == pytest.approx(0.0, abs=1e-12)


def test_responsibility_ignores_rises_that_are_undone() -> None:
    """A rise that falls again later does not count; a rise that stays does."""
    assert responsibility([0.1, 0.6, 0.1, 0.9, 0.9]) == pytest.approx([0.0, 0.0, 0.8, 0.0])


def test_interaction_tells_and_from_or() -> None:
    """It is positive for two parts of a conjunction, and negative for two sufficient causes."""
    for case, sign in (("and-2", 1), ("or", -1)):
        instance = CASES[case].instance(8, 1)
        one, other = sorted(instance.truth.answers[0].units)
        worths = {held: instance.recorded.risk(held) for held in subsets(8)}
        assert sign * interaction(worths, range(8), (one, other)) > 0.1
