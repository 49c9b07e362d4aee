"""The posterior of the risk curve agrees with an enumeration of all segmentations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise, product
from math import exp, log
from random import Random

import pytest
from scipy import special

from tracefork_core.blaming.engine.curve import Belief, Posterior, decisive, gains
from tracefork_core.blaming.engine.localise import next_positions

CASES = [
    ([0, 1, 0, 3, 2], [4, 3, 2, 3, 2], [0.3, 0.1, 0.25, 0.4]),
    ([0, 0, 5], [6, 0, 5], [0.5, 0.5]),
    ([1, 1, 0, 2, 2, 3], [1, 3, 2, 2, 3, 3], [0.2, 0.0, 0.3, 0.1, 0.2]),
]


def enumerated(
    failures: Sequence[int], trials: Sequence[int], hazards: Sequence[float]
) -> dict[tuple[int, ...], float]:
    """Return the weight of every set of changes: prior times marginal likelihood."""
    weights = {}
    for changes in product((0, 1), repeat=len(hazards)):
        weight = 1.0
        for change, hazard in zip(changes, hazards, strict=True):
            weight *= hazard if change else 1 - hazard
        start = 0
        for end in [*(i + 1 for i, change in enumerate(changes) if change), len(trials)]:
            bad, size = sum(failures[start:end]), sum(trials[start:end])
            weight *= exp(special.betaln(0.5 + bad, 0.5 + size - bad) - special.betaln(0.5, 0.5))
            start = end
        weights[changes] = weight
    return weights


@pytest.mark.parametrize(("failures", "trials", "hazards"), CASES)
def test_the_evidence_is_the_sum_over_all_segmentations(
    failures: list[int], trials: list[int], hazards: list[float]
) -> None:
    """The recursion agrees with the enumeration."""
    total = sum(enumerated(failures, trials, hazards).values())
    assert Posterior(failures, trials, hazards).log_evidence == pytest.approx(log(total))


@pytest.mark.parametrize(("failures", "trials", "hazards"), CASES)
def test_sampled_curves_follow_the_posterior(
    failures: list[int], trials: list[int], hazards: list[float]
) -> None:
    """Each segmentation has its posterior frequency, and the first level its posterior mean."""
    posterior, random, samples = Posterior(failures, trials, hazards), Random(5), 8000
    seen: dict[tuple[int, ...], int] = defaultdict(int)
    first = 0.0
    for _ in range(samples):
        curve = posterior.sample(random)
        seen[tuple(int(a != b) for a, b in pairwise(curve))] += 1
        first += curve[0] / samples
    weights = enumerated(failures, trials, hazards)
    total, mean = sum(weights.values()), 0.0
    for changes, weight in weights.items():
        assert seen[changes] / samples == pytest.approx(weight / total, abs=0.02)
        end = changes.index(1) + 1 if 1 in changes else len(trials)
        level = (0.5 + sum(failures[:end])) / (1 + sum(trials[:end]))
        mean += weight / total * level
    assert first == pytest.approx(mean, abs=0.02)


def test_the_decisive_step_is_the_largest_jump_that_is_not_undone() -> None:
    """A jump that is undone later does not count; below the threshold no step is decisive."""
    assert decisive([0.1, 0.9, 0.2, 0.2, 0.95], 0.3) == 3
    assert decisive([0.1, 0.9, 0.9], 0.3) == 0
    assert decisive([0.1, 0.3, 0.5, 0.7], 0.3) is None
    assert decisive([0.9, 0.9], 0.3) is None
    assert sum(gains([0.1, 0.9, 0.2, 0.95])) == pytest.approx(0.95 - 0.1)


def belief(failures: list[int], trials: list[int], samples: int = 500) -> Belief:
    """Return the belief from these counts, with a typical hazard."""
    hazards = [2 / len(trials)] * (len(trials) - 1)
    return Belief.of(
        Posterior(failures, trials, hazards), samples=samples, threshold=0.3, random=Random(1)
    )


def test_a_clear_jump_leaves_one_credible_step() -> None:
    """Many forks on both sides of a jump leave one step with nearly all of the probability."""
    clear = belief([1, 1, 20, 20], [20, 20, 20, 20])
    assert clear.chance(1) > 0.99
    assert clear.credible(0.97) == (1,)
    assert clear.level(0) == pytest.approx(0.05, abs=0.03)
    assert clear.likeliest()[0] == 1


def test_a_flat_curve_has_no_decisive_step() -> None:
    """The run fails from the start as often as at the end."""
    assert belief([20, 20, 20], [20, 20, 20]).chances[0][0] is None


def test_the_credible_set_has_every_step_that_may_hold_the_jump() -> None:
    """Without forks between the ends, every step may hold it."""
    vague = belief([0, 0, 0, 0, 5], [5, 0, 0, 0, 5], samples=2000)
    assert set(vague.credible(0.99)) >= {0, 1, 2, 3}


def test_the_next_fork_is_near_the_middle_of_the_uncertainty() -> None:
    """This holds at equal costs, and a batch forks at different positions."""
    failures, trials = [0] * 8 + [6], [6] + [0] * 7 + [6]
    positions = next_positions(belief(failures, trials), dict.fromkeys(range(8), 1.0), 3)
    assert 2 <= positions[0] <= 6
    assert len(set(positions)) > 1


def test_expensive_forks_are_chosen_later() -> None:
    """The best position is not chosen if it costs a hundred times as much."""
    failures, trials = [0] * 8 + [6], [6] + [0] * 7 + [6]
    known = belief(failures, trials)
    (best,) = next_positions(known, dict.fromkeys(range(8), 1.0), 1)
    costs = {at: 100.0 if at == best else 1.0 for at in range(8)}
    assert next_positions(known, costs, 1)[0] != best
