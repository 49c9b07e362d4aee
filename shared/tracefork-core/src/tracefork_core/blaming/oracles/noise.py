"""How often an oracle errs, measured by grading the same ends again.

An end is bad or good, and nobody knows which; each grade of it errs by itself, a good end fails
with chance a and a bad one passes with chance b. From three grades an end on that is a mixture of
two binomials, which tells a and b as long as a + b < 1 (one rater asked again: Dawid & Skene 1979).
With them a rate V is seen as a + (1 - a - b) V, and is corrected for it (Rogan & Gladen 1978).

What grading again cannot tell is what an oracle always gets wrong: one that fails a good end every
time agrees with itself. Only ends that somebody else has graded would show that. Nor are a and b
known for a kind of end that none was graded of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tracefork_core.blaming.engine.intervals import Count, corrected_effect
from tracefork_core.blaming.engine.probe import Settings, Trial
from tracefork_core.blaming.engine.result import Result

LEAST = 3
"""Grades of an end below which errors cannot be told from ends."""

_ROUNDS = 200


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """How often an oracle errs by chance.

    Attributes:
        ends: how many were graded again; `bad` of them are bad, by most of their grades.
        grades: how many were given to them.
        minority: grades that differ from most of their end's.
        false_fail: how often a good end fails; None where no good one was graded again.
        miss: how often a bad end passes; None where no bad one was.
    """

    ends: int
    bad: int
    grades: int
    minority: int
    false_fail: float | None
    miss: float | None


def measured(trials: Iterable[Trial]) -> Noise | None:
    """Return what the grades that were given again say; None where too few were.

    The first grade of an end is left out: by it the end was chosen.
    """
    counts = [(sum(one.grades), len(one.grades)) for one in trials if len(one.grades) >= LEAST]
    if not counts:
        return None
    bad = [2 * failures > grades for failures, grades in counts]
    false_fail, miss = _rates(counts, [1.0 if one else 0.0 for one in bad])
    return Noise(
        ends=len(counts),
        bad=sum(bad),
        grades=sum(grades for _, grades in counts),
        minority=sum(min(failures, grades - failures) for failures, grades in counts),
        false_fail=None if all(bad) else false_fail,
        miss=miss if any(bad) else None,
    )


def without(noise: Noise | None, settings: Settings, result: Result) -> Result:
    """Return the result with the effect as an oracle without these errors would have seen it."""
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
    """Return a and b by expectation and maximisation, begun at the chances that each end is bad."""
    false_fail = miss = 0.0
    for _ in range(_ROUNDS):
        share = sum(chances) / len(chances)
        false_fail = _weighed(counts, [1 - chance for chance in chances])
        miss = 1 - _weighed(counts, chances) if share else 0.0
        chances = [_chance(count, share, false_fail, miss) for count in counts]
    return false_fail, miss


def _weighed(counts: Sequence[Count], weights: Sequence[float]) -> float:
    """Return the share of failing grades, each end by its weight."""
    grades = sum(weight * n for weight, (_, n) in zip(weights, counts, strict=True))
    failures = sum(weight * k for weight, (k, _) in zip(weights, counts, strict=True))
    return failures / grades if grades else 0.0


def _chance(count: Count, share: float, false_fail: float, miss: float) -> float:
    """Return the chance that an end with these grades is bad."""
    failures, grades = count
    passes = grades - failures
    bad: float = share * (1 - miss) ** failures * miss**passes
    good: float = (1 - share) * false_fail**failures * (1 - false_fail) ** passes
    return bad / (bad + good) if bad + good else share
