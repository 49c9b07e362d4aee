"""Intervals and e-values match their formulas, and hold under any stopping rule."""

from __future__ import annotations

from itertools import product
from math import exp, inf, isclose, log
from random import Random

import pytest
from scipy import optimize, special, stats

from tracefork_core.blaming.engine.intervals import (
    confidence_sequence,
    contrast,
    corrected_effect,
    drift_evalue,
    e_bh,
    log_gap_evalue,
    log_mixture,
    simultaneous,
    wilson,
    worst_case,
)

COUNTS = [(0, 1), (1, 1), (0, 7), (7, 7), (1, 9), (4, 9), (30, 40), (199, 200), (50, 100)]


@pytest.mark.parametrize(("failures", "trials"), COUNTS)
def test_the_mixture_matches_scipy(failures: int, trials: int) -> None:
    """The mixture is a ratio of beta functions."""
    expected = special.betaln(0.5 + failures, 0.5 + trials - failures) - special.betaln(0.5, 0.5)
    assert isclose(log_mixture(failures, trials), expected, abs_tol=1e-12)


def test_the_mixture_sums_to_one_over_all_sequences() -> None:
    """It is a probability distribution over the sequences of one length."""
    sizes = stats.binom(9, 0.5).pmf(range(10)) * 2**9
    total = sum(size * exp(log_mixture(failures, 9)) for failures, size in enumerate(sizes))
    assert total == pytest.approx(1)


@pytest.mark.parametrize("level", [0.05, 0.003])
@pytest.mark.parametrize(("failures", "trials"), COUNTS)
def test_the_ends_of_an_interval_match_scipy(failures: int, trials: int, level: float) -> None:
    """The ends are the roots of mixture / likelihood = 1 / level, as scipy finds them."""

    def against(rate: float) -> float:
        mixture = special.betaln(0.5 + failures, 0.5 + trials - failures) - log(3.141592653589793)
        likelihood = special.xlogy(failures, rate) + special.xlog1py(trials - failures, -rate)
        return float(mixture - likelihood + log(level))

    low, high = confidence_sequence(failures, trials, level)
    best = failures / trials
    if failures:
        assert low == pytest.approx(optimize.brentq(against, 1e-300, best), abs=1e-9)
    if failures < trials:
        assert high == pytest.approx(optimize.brentq(against, best, 1 - 1e-16), abs=1e-9)
    assert (low == 0, high == 1) == (failures == 0, failures == trials)


def test_intervals_without_trials_have_full_width() -> None:
    """A rate is in 0..1 and a difference in -1..1."""
    assert confidence_sequence(0, 0) == wilson(0, 0) == worst_case(0, 0, 0) == (0, 1)
    assert contrast((0, 0), (0, 0)) == (-1, 1)


@pytest.mark.parametrize("after", [(9, 10), (3, 3), (5, 20), (0, 4)])
@pytest.mark.parametrize("before", [(1, 10), (0, 2), (6, 20), (4, 4)])
def test_a_contrast_is_the_range_over_the_kept_pairs(
    after: tuple[int, int], before: tuple[int, int]
) -> None:
    """The interval of a difference holds just the pairs of rates a fine grid keeps."""
    grid = [(step + 0.5) / 400 for step in range(400)]

    def evidence(count: tuple[int, int]) -> list[float]:
        failures, trials = count
        return [
            log_mixture(*count)
            - float(special.xlogy(failures, p) + special.xlog1py(trials - failures, -p))
            for p in grid
        ]

    one, other, bound = evidence(after), evidence(before), log(1 / 0.05)
    kept = [
        p - q
        for p, left in zip(grid, one, strict=True)
        for q, right in zip(grid, other, strict=True)
        if left + right < bound
    ]
    low, high = contrast(after, before)
    assert (low, high) == pytest.approx((min(kept), max(kept)), abs=0.006)


def test_a_contrast_excludes_zero_exactly_when_its_evalue_is_large() -> None:
    """The interval of a contrast excludes 0 where the e-value of the gap exceeds 1 / level."""
    random = Random(3)
    for _ in range(60):
        after = random.randint(0, 12), 12
        before = random.randint(0, 9), 9
        strong = log_gap_evalue(after, before) > log(1 / 0.01)
        assert (contrast(after, before, 0.01)[0] > 0) == strong


@pytest.mark.parametrize("rate", [0.03, 0.05, 0.5, 0.97])
def test_an_interval_holds_at_every_look(rate: float) -> None:
    """Looked at after each of 120 throws, at most 5 % of sequences are ever wrong."""
    random, wrong, runs = Random(f"look {rate}"), 0, 160
    bounds = {}
    for _ in range(runs):
        failures = 0
        for trials in range(1, 121):
            failures += random.random() < rate
            if (failures, trials) not in bounds:
                bounds[failures, trials] = confidence_sequence(failures, trials)
            low, high = bounds[failures, trials]
            if not low <= rate <= high:
                wrong += 1
                break
    assert stats.binomtest(wrong, runs, 0.05, alternative="greater").pvalue > 0.01


def test_wilson_does_not_hold_at_every_look() -> None:
    """The control: Wilson's interval at 5 % is wrong at some look in a third of sequences."""
    random, wrong = Random(1), 0
    for _ in range(200):
        failures, missed = 0, False
        for trials in range(1, 121):
            failures += random.random() < 0.05
            low, high = wilson(failures, trials)
            missed |= not low <= 0.05 <= high
        wrong += missed
    assert wrong > 40


def test_a_contrast_holds_under_early_stopping() -> None:
    """Stopping as soon as two equal rates seem different is wrong in at most 5 % of runs."""
    random, wrong, runs = Random(2), 0, 300
    for _ in range(runs):
        arms = [[0, 0], [0, 0]]
        for look in range(80):
            arm = arms[look % 2]
            arm[0] += random.random() < 0.3
            arm[1] += 1
            one, other = ((arm[0], arm[1]) for arm in arms)
            if max(log_gap_evalue(one, other), log_gap_evalue(other, one)) > log(40):
                wrong += 1
                break
    assert stats.binomtest(wrong, runs, 0.05, alternative="greater").pvalue > 0.01


def test_an_evalue_is_at_most_one_on_average() -> None:
    """Over all outcomes of two equal arms, the mean e-value of a gap and of drift is <= 1."""
    for rate in (0.1, 0.5, 0.9):
        chances = stats.binom(6, rate).pmf(range(7))
        gap = drift = 0.0
        for a, b in product(range(7), repeat=2):
            gap += chances[a] * chances[b] * exp(log_gap_evalue((a, 6), (b, 6)))
            drift += chances[a] * chances[b] * drift_evalue([((a, 6), (b, 6))])
        assert gap <= 1 + 1e-9
        assert drift <= 1 + 1e-9


def test_drift_evalue_is_large_only_for_an_arm_that_changed() -> None:
    """An arm that changed raises it even beside stable arms; stable arms do not."""
    stayed = (5, 10), (5, 10)
    assert drift_evalue([((0, 10), (10, 10)), stayed, stayed]) > 20
    assert drift_evalue([stayed, stayed]) < 1
    assert drift_evalue([((5, 10), (0, 0))]) <= 1
    assert drift_evalue([]) == 1


def test_wilson_matches_scipy() -> None:
    """The score interval agrees with scipy's."""
    for failures, trials in COUNTS:
        expected = stats.binomtest(failures, trials).proportion_ci(method="wilson")
        assert wilson(failures, trials) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_the_worst_case_covers_every_outcome() -> None:
    """It contains every interval that the undefined runs could have led to."""
    low, high = worst_case(5, 3, 4)
    for bad in range(5):
        one = confidence_sequence(5 + bad, 12)
        assert low <= one[0] <= one[1] <= high


def test_the_effect_is_corrected_for_oracle_errors() -> None:
    """The affine error is undone exactly, and the result is clipped to -1..1."""
    assert corrected_effect(0.35, 0.1, 0.2) == pytest.approx(0.5)
    assert (corrected_effect(0.8, 0.1, 0.2), corrected_effect(-0.8, 0.1, 0.2)) == (1, -1)


def test_positions_share_the_level() -> None:
    """A run of n units has n + 1 positions."""
    assert simultaneous(0.05, 9) == pytest.approx(0.005)


@pytest.mark.parametrize("seed", range(20))
def test_e_bh_matches_its_definition(seed: int) -> None:
    """It rejects the k largest, for the largest k with the k-th e-value >= n / (level k)."""
    random = Random(seed)
    evalues = [random.choice([0.0, 1.0, 30.0, 60.0, 200.0, inf]) for _ in range(7)]
    ranked = sorted(evalues, reverse=True)
    size = max((k for k in range(1, 8) if ranked[k - 1] >= 7 / (0.05 * k)), default=0)
    found = e_bh(evalues)
    assert len(found) == size
    assert all(evalues[i] >= ranked[size - 1] for i in found)
