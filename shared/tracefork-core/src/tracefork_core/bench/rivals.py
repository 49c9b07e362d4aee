"""The rules of other tools: they fork equally often at every step, then apply a rule of thumb.

They fork in the same simulation as the engine, which counts their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from tracefork_core.bench.simulation import Simulation
from tracefork_core.blaming.engine.intervals import wilson

BENIGN = 0
"""The harmless response in every program; it stands for a fixed substitute text."""
LADDER = (3, 5, 8, 10, 12, 16, 20, 30, 40)
"""The numbers of forks at each step that are tried."""
_NULL = 0.05
"""The flip rate by chance that other tools compare a flip rate with."""

Counts = Sequence[int]
Rule = Callable[[Counts, int], int | None]
Arm = Callable[[Sequence[int]], list[dict[int, int]]]


@dataclass(frozen=True, slots=True)
class Pick:
    """The step that a rule names, or None for no step, and its forks and live calls."""

    step: int | None
    forks: int
    calls: int


def kept_prefixes(recorded: Sequence[int]) -> list[dict[int, int]]:
    """Return arms that hold each prefix, the rest live; the last holds all and costs no calls."""
    return [dict(enumerate(recorded[:held])) for held in range(len(recorded) + 1)]


def substituted(recorded: Sequence[int]) -> list[dict[int, int]]:
    """Return arms that hold each prefix and substitute the next step, the rest live."""
    return [{**dict(enumerate(recorded[:at])), at: BENIGN} for at in range(len(recorded))]


def substituted_prefixes(recorded: Sequence[int]) -> list[dict[int, int]]:
    """Return arms that substitute every step of each prefix, the rest live."""
    return [dict.fromkeys(range(at + 1), BENIGN) for at in range(len(recorded))]


def largest_drop(failures: Counts, each: int) -> int | None:
    """Return the step at which the estimated prefix risk rises most."""
    rises = [after - before for before, after in pairwise(failures)]
    return rises.index(max(rises))


def point_of_commitment(failures: Counts, each: int) -> int | None:
    """Return the last step that flips more often than by chance when drawn again, or None."""
    for step in reversed(range(len(failures) - 1)):
        if wilson(each - failures[step], each)[0] > _NULL:
            return step
    return None


def controlled_commitment(failures: Counts, each: int) -> int | None:
    """Return the last step that flips more often than a control arm with everything held, or None.

    No tool ships this. It is the point of commitment at its best.
    """
    for step in reversed(range(len(failures) - 1)):
        if newcombe(failures[-1], failures[step], each)[0] > 0:
            return step
    return None


def flip_rate(failures: Counts, each: int) -> int | None:
    """Return the step that flips most, the first of equals; None if that may be chance."""
    flips = [each - count for count in failures]
    most = max(flips)
    return flips.index(most) if wilson(most, each)[0] > _NULL else None


def single_order_shapley(failures: Counts, each: int) -> int | None:
    """Return the step that adds most passes in temporal order, starting from no passes."""
    passes = [0, *(each - count for count in failures)]
    credit = [after - before for before, after in pairwise(passes)]
    return credit.index(max(credit))


RIVALS: Mapping[str, tuple[Arm, Rule]] = {
    "largest drop": (kept_prefixes, largest_drop),
    "point of commitment": (kept_prefixes, point_of_commitment),
    "controlled commitment": (kept_prefixes, controlled_commitment),
    "flip rate": (substituted, flip_rate),
    "single-order Shapley": (substituted_prefixes, single_order_shapley),
}


def picks(
    simulation: Simulation, ladder: Sequence[int] = LADDER
) -> Iterator[tuple[str, int, Pick]]:
    """Yield (rule, forks at each step, pick) for each rule and each number of the ladder.

    Rules that use the same arms use the same forks; each is charged for all of them.
    """
    for arm in dict.fromkeys(arm for arm, _ in RIVALS.values()):
        rules = {name: rule for name, (its, rule) in RIVALS.items() if its is arm}
        arms = arm(simulation.recorded.responses)
        failures, done, forks, calls = [0] * len(arms), 0, simulation.forks, simulation.calls
        for each in ladder:
            for at, forced in enumerate(arms):
                failures[at] += sum(simulation.fails(forced) for _ in range(each - done))
            done = each
            for name, rule in rules.items():
                step = rule(failures, each)
                yield name, each, Pick(step, simulation.forks - forks, simulation.calls - calls)


def newcombe(hits: int, others: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of `hits / of - others / of` by Newcombe (1998), method 10."""
    one, other = hits / of, others / of
    low, high = wilson(hits, of)
    other_low, other_high = wilson(others, of)
    down = sqrt((one - low) ** 2 + (other_high - other) ** 2)
    up = sqrt((high - one) ** 2 + (other - other_low) ** 2)
    return one - other - down, one - other + up
