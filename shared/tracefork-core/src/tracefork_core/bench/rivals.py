"""The rules that others find a step by: as many forks at every step, then a rule of thumb.

They fork in the same simulation as the engine does, and their calls are counted there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from tracefork_core.bench.simulation import Simulation
from tracefork_core.blaming.engine.intervals import wilson

BENIGN = 0
"""The response that does no harm, in every program: what a fixed substitute text is like."""
LADDER = (3, 5, 8, 10, 12, 16, 20, 30, 40)
"""How many forks at each step are tried."""
_NULL = 0.05
"""The chance flip rate that others hold a flip rate against."""

Counts = Sequence[int]
Rule = Callable[[Counts, int], int | None]
Arm = Callable[[Sequence[int]], list[dict[int, int]]]


@dataclass(frozen=True, slots=True)
class Pick:
    """The step a rule names, None for nobody, and what that took."""

    step: int | None
    forks: int
    calls: int


def kept_prefixes(recorded: Sequence[int]) -> list[dict[int, int]]:
    """Hold each prefix, the rest live; the last arm holds everything, and costs no calls."""
    return [dict(enumerate(recorded[:held])) for held in range(len(recorded) + 1)]


def substituted(recorded: Sequence[int]) -> list[dict[int, int]]:
    """Hold each prefix, put a benign text in the next place, the rest live."""
    return [{**dict(enumerate(recorded[:at])), at: BENIGN} for at in range(len(recorded))]


def substituted_prefixes(recorded: Sequence[int]) -> list[dict[int, int]]:
    """Put a benign text in each place of ever longer prefixes, the rest live."""
    return [dict.fromkeys(range(at + 1), BENIGN) for at in range(len(recorded))]


def largest_drop(failures: Counts, each: int) -> int | None:
    """Name the step over which the estimated prefix risk rises most."""
    rises = [after - before for before, after in pairwise(failures)]
    return rises.index(max(rises))


def point_of_commitment(failures: Counts, each: int) -> int | None:
    """Name the latest step that flips more often than by chance when it is drawn again."""
    for step in reversed(range(len(failures) - 1)):
        if wilson(each - failures[step], each)[0] > _NULL:
            return step
    return None


def controlled_commitment(failures: Counts, each: int) -> int | None:
    """Name the latest step that flips more often than a control arm that holds everything.

    No one ships this. It is the most that can be made of the point of commitment.
    """
    for step in reversed(range(len(failures) - 1)):
        if newcombe(failures[-1], failures[step], each)[0] > 0:
            return step
    return None


def flip_rate(failures: Counts, each: int) -> int | None:
    """Name the step that flips most, the first of equals; nobody where that may be chance."""
    flips = [each - count for count in failures]
    most = max(flips)
    return flips.index(most) if wilson(most, each)[0] > _NULL else None


def single_order_shapley(failures: Counts, each: int) -> int | None:
    """Name the step that adds most passes, one temporal order and no passes before the first."""
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
    """Give what each rule names with ever more forks at each step: rule, forks a step, pick.

    Rules that read the same arms read the same forks; each is charged for all of them.
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
    """Return Newcombe's 95 % interval of the difference of two rates of as many tries."""
    one, other = hits / of, others / of
    low, high = wilson(hits, of)
    other_low, other_high = wilson(others, of)
    down = sqrt((one - low) ** 2 + (other_high - other) ** 2)
    up = sqrt((high - one) ** 2 + (other - other_low) ** 2)
    return one - other - down, one - other + up
