"""Estimate the risk of failure by how much of a run is kept, and the decisive step from that.

V(i) is the probability of failure with the first i steps as recorded and the rest live. The model
is a product partition model (Barry & Hartigan 1992): V is constant between a few changes, each
level has a Beta(1/2, 1/2) prior, and each step has its own probability of a change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import exp, log, log1p, pi, sin
from random import Random

from tracefork_core.blaming.engine.intervals import log_mixture

Curve = Sequence[float]


class Posterior:
    """The posterior distribution of V, given the failures and trials at each position.

    Args:
        failures: number of failed runs at each position.
        trials: number of runs at each position.
        hazards: probability of a change at each step, 0 <= h < 1; one fewer than the positions.

    Attributes:
        log_evidence: natural logarithm of the marginal likelihood of the data.

    The backward recursion over change points is Fearnhead (2006), "Exact and efficient Bayesian
    inference for multiple changepoint problems", in O(positions squared).
    """

    def __init__(
        self, failures: Sequence[int], trials: Sequence[int], hazards: Sequence[float]
    ) -> None:
        self._failures = list(accumulate(failures, initial=0))
        self._trials = list(accumulate(trials, initial=0))
        size = len(failures)
        stay = list(accumulate((log1p(-hazard) for hazard in hazards), initial=0.0))
        rest = [0.0] * (size + 1)
        self._ends: list[list[float]] = [[] for _ in range(size)]
        for start in range(size - 1, -1, -1):
            parts = [
                self._segment(start, end)
                + stay[end]
                - stay[start]
                + (0.0 if end == size - 1 else _log(hazards[end]) + rest[end + 1])
                for end in range(start, size)
            ]
            top = max(parts)
            weights = list(accumulate(exp(part - top) for part in parts))
            rest[start] = top + log(weights[-1])
            self._ends[start] = [weight / weights[-1] for weight in weights]
        self.log_evidence = rest[0]

    def sample(self, random: Random) -> list[float]:
        """Return one curve, drawn from the posterior."""
        size, start, curve = len(self._ends), 0, []
        while start < size:
            ends = self._ends[start]
            end = min(start + bisect_left(ends, random.random()), size - 1)
            failures = self._failures[end + 1] - self._failures[start]
            trials = self._trials[end + 1] - self._trials[start]
            if trials:
                level = random.betavariate(failures + 0.5, trials - failures + 0.5)
            else:  # Beta(1/2, 1/2) is the arcsine distribution, which is much faster to draw.
                level = sin(pi / 2 * random.random()) ** 2
            curve.extend([level] * (end - start + 1))
            start = end + 1
        return curve

    def _segment(self, start: int, end: int) -> float:
        return log_mixture(
            self._failures[end + 1] - self._failures[start],
            self._trials[end + 1] - self._trials[start],
        )


def gains(curve: Curve) -> list[float]:
    """Return how much each step raised the risk for good: R_i = M(i+1) - M(i).

    M(i) = min over j >= i of V(j), so a rise that later steps undo does not count. There is one
    gain per step, one fewer than positions.
    """
    ahead = list(accumulate(reversed(curve), min))
    ahead.reverse()
    return [after - before for before, after in pairwise(ahead)]


def decisive(curve: Curve, threshold: float) -> int | None:
    """Return the step with the largest gain, the first of equals; None if below the threshold."""
    # Does not call `gains`, which would be too slow: this runs for every sampled curve.
    best, largest, ahead = threshold, None, curve[-1]
    for step in range(len(curve) - 2, -1, -1):
        risk = curve[step]
        if risk < ahead:
            if ahead - risk >= best:
                best, largest = ahead - risk, step
            ahead = risk
    return largest


@dataclass(frozen=True, slots=True)
class Belief:
    """The posterior of the decisive step, estimated from sampled curves.

    Attributes:
        curves: the sample.
        steps: the decisive step of each sampled curve.
        chances: probability of each step, the likeliest first; the step None means no decisive
            step.
    """

    curves: tuple[Curve, ...]
    steps: tuple[int | None, ...]
    chances: tuple[tuple[int | None, float], ...]

    @classmethod
    def of(cls, posterior: Posterior, *, samples: int, threshold: float, random: Random) -> Belief:
        """Draw `samples` curves and find the decisive step of each."""
        curves = tuple(posterior.sample(random) for _ in range(samples))
        steps = tuple(decisive(curve, threshold) for curve in curves)
        counts = sorted(
            Counter(steps).items(), key=lambda item: (-item[1], item[0] is None, item[0] or 0)
        )
        return cls(curves, steps, tuple((step, count / samples) for step, count in counts))

    def chance(self, step: int | None) -> float:
        """Return the probability that a step is the decisive one; None asks for `no such step`."""
        return dict(self.chances).get(step, 0.0)

    def likeliest(self) -> tuple[int | None, float]:
        """Return the likeliest step, and its probability given that a decisive step exists."""
        for step, chance in self.chances:
            if step is not None:
                return step, chance / (1 - self.chance(None))
        return None, 0.0

    def credible(self, mass: float) -> tuple[int | None, ...]:
        """Return the smallest set of steps, likeliest first, with at least this probability."""
        total, kept = 0.0, []
        for step, chance in self.chances:
            kept.append(step)
            total += chance
            if total >= mass - 1e-9:
                break
        return tuple(kept)

    def level(self, position: int) -> float:
        """Return the posterior mean of the risk at a position."""
        return sum(curve[position] for curve in self.curves) / len(self.curves)

    def mean_gains(self) -> list[float]:
        """Return the mean gain of each step; they sum to V(n) - M(0), so gains of groups add up."""
        columns = zip(*(gains(curve) for curve in self.curves), strict=True)
        return [sum(column) / len(self.curves) for column in columns]


def _log(value: float) -> float:
    return log(value) if value > 0 else float("-inf")
