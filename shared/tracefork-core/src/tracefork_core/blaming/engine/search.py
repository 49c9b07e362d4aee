"""Where to fork next: what tells most about the decisive step, for what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from operator import mul

from tracefork_core.blaming.engine.curve import Belief


def next_positions(belief: Belief, costs: Mapping[int, float], size: int) -> list[int]:
    """Return `size` positions to fork at, each the best after those before it.

    The score is I(Y; D | outcomes of the batch so far) / cost: mutual information between the
    outcome of a fork and the decisive step (Lindley 1956; MacKay 1992, "Information-based
    objective functions for active data selection"), estimated from the sampled curves. A batch
    whose members know of one another does not ask the same thing twice.

    Args:
        belief: what is known.
        costs: expected cost of a fork, > 0, of the positions that may be chosen.
        size: how many.
    """
    groups = _Groups(belief, sorted(costs))
    chosen: list[int] = []
    while len(chosen) < size:
        # A sliver, so that cost decides where nothing is to be learned.
        scores = {at: (groups.information(at) + 1e-6) / costs[at] for at in costs}
        best = max(sorted(scores), key=scores.__getitem__)
        chosen.append(best)
        groups.split(best)
    return chosen


class _Groups:
    """The sampled curves by decisive step, weighed by how each pattern of outcomes fits them."""

    def __init__(self, belief: Belief, positions: Sequence[int]) -> None:
        members: dict[int | None, list[int]] = {}
        for index, step in enumerate(belief.steps):
            members.setdefault(step, []).append(index)
        self._total = len(belief.steps)
        self._columns = [
            {at: [belief.curves[index][at] for index in group] for at in positions}
            for group in members.values()
        ]
        self._patterns = [[[1.0] * len(group) for group in members.values()]]
        self._masses = [[float(len(group)) for group in members.values()]]

    def information(self, position: int) -> float:
        """Return what an outcome at a position tells about the step, in nats."""
        told = 0.0
        for weights, masses in zip(self._patterns, self._masses, strict=True):
            fails = [
                sum(map(mul, group, columns[position]))
                for group, columns in zip(weights, self._columns, strict=True)
            ]
            told += _spread(sum(fails), sum(masses))
            told -= sum(map(_spread, fails, masses))
        return max(0.0, told / self._total)

    def split(self, position: int) -> None:
        """Take a fork at a position as asked: its outcome will be known to those after it."""
        split = []
        for weights in self._patterns:
            failing = [
                list(map(mul, group, columns[position]))
                for group, columns in zip(weights, self._columns, strict=True)
            ]
            split.append(failing)
            split.append(
                [
                    [whole - part for whole, part in zip(group, parts, strict=True)]
                    for group, parts in zip(weights, failing, strict=True)
                ]
            )
        self._patterns = split
        self._masses = [[sum(group) for group in weights] for weights in split]


def _spread(part: float, whole: float) -> float:
    """Return whole * H(part / whole), in nats."""
    rest = whole - part
    if part <= 0 or rest <= 0:
        return 0.0
    return whole * log(whole) - part * log(part) - rest * log(rest)
