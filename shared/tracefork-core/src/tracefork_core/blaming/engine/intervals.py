"""Intervals and e-values for rates that stay valid at every look and under any stopping rule.

A rate is a probability of failure, observed as `failures` of `trials`. The trials of an arm are
independent coin throws seen in order; which arm is thrown next may depend on earlier throws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, lgamma, log, pi, sqrt

Count = tuple[int, int]  # failures, trials
Interval = tuple[float, float]

_LOG_BETA_HALVES = log(pi)  # ln B(1/2, 1/2)
_HALVINGS = 50
_LARGEST_LOG = 700.0


def log_mixture(failures: float, trials: float) -> float:
    """Return the log probability of a sequence of throws whose rate is drawn from Beta(1/2, 1/2).

    The mixture of Robbins (1970), "Statistical methods related to the law of the iterated
    logarithm"; with this prior also the Krichevsky-Trofimov (1981) code.
    """
    if not trials:
        return 0.0
    a, b = failures + 0.5, trials - failures + 0.5
    return lgamma(a) + lgamma(b) - lgamma(a + b) - _LOG_BETA_HALVES


def log_likelihood(failures: float, trials: float, rate: float) -> float:
    """Return the log probability of a sequence of throws at a rate; -inf if it is impossible."""
    total = 0.0
    if failures:
        total += failures * log(rate) if rate > 0 else -inf
    if trials > failures:
        total += (trials - failures) * log(1 - rate) if rate < 1 else -inf
    return total


def confidence_sequence(failures: int, trials: int, level: float = 0.05) -> Interval:
    """Return the interval of rates that the throws so far do not refute.

    Over all looks together it misses the true rate with probability <= `level`.

    {p : mixture / likelihood(p) < 1/level}: Ville's (1939) inequality for the mixture martingale,
    as in Howard, Ramdas, McAuliffe & Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic
    confidence sequences".
    """
    if not trials:
        return 0.0, 1.0
    mixture, bound = log_mixture(failures, trials), log(1 / level)
    best = failures / trials

    def kept(rate: float) -> bool:
        return mixture - log_likelihood(failures, trials, rate) < bound

    low = 0.0 if not failures else _edge(kept, best, 0.0)
    high = 1.0 if failures == trials else _edge(kept, best, 1.0)
    return low, high


def worst_case(failures: int, passes: int, undefined: int, level: float = 0.05) -> Interval:
    """Return the interval that holds whatever the outcomes of the runs without one would have been.

    The worst-case bounds of Manski (1990): all of them good, and all of them bad.
    """
    trials = failures + passes + undefined
    low, high = confidence_sequence(failures, trials, level)
    if undefined:
        high = confidence_sequence(failures + undefined, trials, level)[1]
    return low, high


def contrast(after: Count, before: Count, level: float = 0.05) -> Interval:
    """Return the interval of differences `after - before` of two rates that are not refuted.

    It is valid at any time. The product of both arms' martingales is a martingale too; the interval
    is the range of p - q over the pairs it does not refute. Each arm's term is convex, so a
    bisection finds the best pair for a difference.
    """
    bound = log(1 / level) - log_mixture(*after) - log_mixture(*before)

    def kept(difference: float) -> bool:
        return -_best_pair(after, before, difference) < bound

    middle = _rate(after) - _rate(before)
    low = -1.0 if kept(-1.0) else _edge(kept, middle, -1.0)
    high = 1.0 if kept(1.0) else _edge(kept, middle, 1.0)
    return low, high


def simultaneous(level: float, units: int) -> float:
    """Return the level of each interval such that those of all positions hold at once (Bonferroni).

    A run has `units + 1` positions: before each unit, and after the last.
    """
    return level / (units + 1)


def wilson(failures: int, trials: int, z: float = 1.959964) -> Interval:
    """Return the score interval of Wilson (1927), valid only if `trials` was fixed in advance.

    Most tools print this one. Looked at after every throw, it is wrong far more often than its
    level says.
    """
    if not trials:
        return 0.0, 1.0
    rate, scale = failures / trials, 1 + z * z / trials
    middle = (rate + z * z / (2 * trials)) / scale
    half = z * sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / scale
    low = 0.0 if not failures else max(0.0, middle - half)
    return low, 1.0 if failures == trials else min(1.0, middle + half)


def corrected_effect(effect: float, false_fail: float, miss: float) -> float:
    """Return a difference of rates as a perfect oracle would have seen it, clipped to -1..1.

    An oracle with the same errors in both arms shrinks a difference by the factor
    1 - false_fail - miss (Rogan & Gladen 1978).
    """
    return min(1.0, max(-1.0, effect / (1 - false_fail - miss)))


def log_gap_evalue(after: Count, before: Count) -> float:
    """Return the log e-value against "the rate after is not above the rate before".

    The mixture divided by the best likelihood under the null: universal inference, Wasserman,
    Ramdas & Balakrishnan (2020). It is valid at any time: rejecting the null at e >= 1/level errs
    with probability <= level.
    """
    evidence = log_mixture(*after) + log_mixture(*before)
    if _rate(after) > _rate(before):
        return evidence - _pooled(after, before)
    return evidence - log_likelihood(*after, _rate(after)) - log_likelihood(*before, _rate(before))


_GRID = 50


def rate_evalue(failures: int, trials: int, rate: float, *, above: bool) -> float:
    """Return the e-value that the rate of failures is above `rate`, or below it.

    The mean likelihood ratio of a grid of rates on that side, its end included, to `rate`: for each
    of them the ratio is a supermartingale whatever the rate on the other side (Robbins 1970; Ramdas
    et al. 2023, "Game-theoretic statistics and safe anytime-valid inference"). Half of the weight
    lies on the end, where a test that always passes has its evidence.
    """
    end = 1.0 if above else 0.0
    inner = [rate + (end - rate) * (step + 0.5) / _GRID for step in range(_GRID)]
    null = log_likelihood(failures, trials, rate)
    ratios = [evalue(log_likelihood(failures, trials, one) - null) for one in inner]
    at_end = evalue(log_likelihood(failures, trials, end) - null)
    return (at_end + sum(ratios) / _GRID) / 2


def evalue(log_evalue: float) -> float:
    """Return the e-value of a log e-value, capped where a float would overflow."""
    return exp(min(_LARGEST_LOG, log_evalue))


def drift_evalue(pairs: Sequence[tuple[Count, Count]]) -> float:
    """Return the e-value against "no arm's rate changed between its early and late throws".

    Two-sided, else as `log_gap_evalue`. The mean over arms is an e-value however the arms depend on
    each other (Vovk & Wang 2021). The split into early and late must depend only on earlier throws.
    """
    logs = (
        log_mixture(*early) + log_mixture(*late) - _pooled(early, late) for early, late in pairs
    )
    return sum(map(evalue, logs)) / len(pairs) if pairs else 1.0


def e_bh(evalues: Sequence[float], level: float = 0.05) -> tuple[int, ...]:
    """Return the indices of the nulls rejected at a false discovery rate <= `level`.

    e-BH, Wang & Ramdas (2022), "False discovery rate control with e-values"; valid under any
    dependence.
    """
    order = sorted(range(len(evalues)), key=lambda index: -evalues[index])
    kept = 0
    for rank, index in enumerate(order, start=1):
        if evalues[index] >= len(evalues) / (level * rank):
            kept = rank
    return tuple(sorted(order[:kept]))


def _rate(count: Count) -> float:
    failures, trials = count
    return failures / trials if trials else 0.5


def _pooled(one: Count, other: Count) -> float:
    """Return the maximum log likelihood of two arms with the same rate."""
    failures, trials = one[0] + other[0], one[1] + other[1]
    return log_likelihood(failures, trials, _rate((failures, trials)))


def _edge(kept: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the last kept value on the way from `inside` to `outside`, rounded outward."""
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if kept(middle):
            inside = middle
        else:
            outside = middle
    return outside


def _best_pair(after: Count, before: Count, difference: float) -> float:
    """Return the maximum log likelihood of two arms whose rates differ by `difference`."""
    low, high = max(0.0, -difference), min(1.0, 1 - difference)

    def slope(rate: float) -> float:
        return _slope(before, rate) + _slope(after, rate + difference)

    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if slope(middle) > 0:
            low = middle
        else:
            high = middle
    rate = (low + high) / 2
    other = min(1.0, max(0.0, rate + difference))
    return log_likelihood(*before, rate) + log_likelihood(*after, other)


def _slope(count: Count, rate: float) -> float:
    failures, trials = count
    total = 0.0
    if failures:
        total += failures / rate if rate > 0 else inf
    if trials > failures:
        total -= (trials - failures) / (1 - rate) if rate < 1 else inf
    return total
