"""Measure how often an oracle errs, by grading the same outcomes several times.

An outcome is good or bad, but which is unknown. Each grade errs independently: a good outcome fails
with probability a, a bad one passes with probability b. With three or more grades per outcome this
is a mixture of two binomials, which identifies a and b if a + b < 1 (one rater asked repeatedly:
Dawid & Skene 1979). A true rate V is then observed as a + (1 - a - b) V, and can be corrected
(Rogan & Gladen 1978).

Regrading cannot find systematic errors: an oracle that always fails a good outcome agrees with
itself. Only outcomes graded by another rater would show that. Nor can it measure a or b if no good
or no bad outcome was regraded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tracefork_core.blaming.engine.intervals import Count, corrected_effect
from tracefork_core.blaming.engine.probe import Settings, Trial
from tracefork_core.blaming.engine.result import Result

LEAST = 3
"""Grades per outcome that are needed to tell errors from outcomes."""

_ROUNDS = 200


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """How often an oracle errs by chance.

    Attributes:
        ends: number of outcomes that were regraded.
        bad: number of those that are bad, by the majority of their grades.
        grades: number of grades that they got.
        minority: number of grades that differ from the majority of their outcome.
        false_fail: rate at which a good outcome fails; None if no good one was regraded.
        miss: rate at which a bad outcome passes; None if no bad one was regraded.
    """

    ends: int
    bad: int
    grades: int
    minority: int
    false_fail: float | None
    miss: float | None


def measured(trials: Iterable[Trial]) -> Noise | None:
    """Estimate the error rates from the repeated grades; None if no outcome has enough of them.

    The first grade of an outcome does not count, since it decided which outcomes were regraded.
    """
    counts = [
        (sum(trial.grades), len(trial.grades)) for trial in trials if len(trial.grades) >= LEAST
    ]
    if not counts:
        return None
    bad = [2 * failures > grades for failures, grades in counts]
    false_fail, miss = _rates(counts, [1.0 if is_bad else 0.0 for is_bad in bad])
    return Noise(
        ends=len(counts),
        bad=sum(bad),
        grades=sum(grades for _, grades in counts),
        minority=sum(min(failures, grades - failures) for failures, grades in counts),
        false_fail=None if all(bad) else false_fail,
        miss=miss if any(bad) else None,
    )


def without(noise: Noise | None, settings: Settings, result: Result) -> Result:
    """Return the result with its effect corrected for these errors of the oracle."""
    if noise is None or result.decisive is None:
        return result
    false_fail = settings.false_fail if noise.false_fail is None else noise.false_fail
    miss = settings.miss if noise.miss is None else noise.miss
    if false_fail + miss >= 1:
        return result
    effect = corrected_effect(result.decisive.effect, false_fail, miss)
    decisive = msgspec.structs.replace(result.decisive, corrected=effect)
    return msgspec.structs.replace(result, decisive=decisive)


def _rates(counts: Sequence[Count], chances: list[float]) -> tuple[float, float]:
    """Estimate a and b by expectation maximisation, starting at P(bad) of each outcome."""
    false_fail = miss = 0.0
    for _ in range(_ROUNDS):
        share = sum(chances) / len(chances)
        false_fail = _weighed(counts, [1 - chance for chance in chances])
        miss = 1 - _weighed(counts, chances) if share else 0.0
        chances = [_chance(count, share, false_fail, miss) for count in counts]
    return false_fail, miss


def _weighed(counts: Sequence[Count], weights: Sequence[float]) -> float:
    """Return the share of failing grades, weighted by outcome."""
    grades = sum(weight * n for weight, (_, n) in zip(weights, counts, strict=True))
    failures = sum(weight * k for weight, (k, _) in zip(weights, counts, strict=True))
    return failures / grades if grades else 0.0


def _chance(count: Count, share: float, false_fail: float, miss: float) -> float:
    """Return the probability that an outcome with these grades is bad."""
    failures, grades = count
    passes = grades - failures
    bad: float = share * (1 - miss) ** failures * miss**passes
    good: float = (1 - share) * false_fail**failures * (1 - false_fail) ** passes
    return bad / (bad + good) if bad + good else share
