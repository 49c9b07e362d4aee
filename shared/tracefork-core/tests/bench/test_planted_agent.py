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
    """Return the risk as the sum over every path there is."""
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
    """Give every set of steps."""
    for bits in range(2**size):
        yield frozenset(step for step in range(size) if bits >> step & 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steps", [1, 3, 5])
def test_the_risk_is_the_sum_over_all_paths(steps: int, seed: int) -> None:
    """For every set of held steps the recursion gives what enumerating the paths gives."""
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


def test_what_is_held_matters() -> None:
    """The control: the risks of different sets of held steps of one run do differ."""
    recorded = arbitrary(5, 7)
    assert len({round(recorded.risk(held), 9) for held in subsets(5)}) > 20


def test_advantages_add_up_and_average_to_nothing() -> None:
    """Advantages sum to V(n) - V(0), and over what a step draws they average to zero."""
    recorded = arbitrary(4, 3)
    curve = recorded.curve()
    assert sum(changes(curve)) == pytest.approx(curve[-1] - curve[0])
    first = recorded.program.steps[0].policy[0]
    average = 0.0
    for response, chance in enumerate(first):
        other = Recorded(recorded.program, (response, *recorded.responses[1:]))
        average += chance * changes(other.curve())[0]
    assert average == pytest.approx(0.0, abs=1e-12)


def test_responsibility_forgives_what_is_won_back() -> None:
    """A rise that later falls again is nobody's; the last rise that stays is."""
    assert responsibility([0.1, 0.6, 0.1, 0.9, 0.9]) == pytest.approx([0.0, 0.0, 0.8, 0.0])


def test_interaction_tells_and_from_or() -> None:
    """Two halves of a conjunction help one another, two full causes are in each other's way."""
    for case, sign in (("and-2", 1), ("or", -1)):
        instance = CASES[case].instance(8, 1)
        one, other = sorted(instance.truth.answers[0].units)
        worths = {held: instance.recorded.risk(held) for held in subsets(8)}
        assert sign * interaction(worths, range(8), (one, other)) > 0.1
