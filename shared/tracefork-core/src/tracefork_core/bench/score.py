"""Scores an engine on planted cases over many seeds, beside the rules of other tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, fsum, lgamma, log, log1p

from tracefork_core.bench.cases import Case, Instance
from tracefork_core.bench.driver import Claim, Engine, Interval, drive
from tracefork_core.bench.planted_agent import chance
from tracefork_core.bench.rivals import LADDER, RIVALS, Pick, picks
from tracefork_core.bench.scenarios import INNOCENT
from tracefork_core.bench.simulation import Simulation


def quantile(values: Sequence[int], share: float) -> int:
    """Return the smallest value that at least this share of the values does not exceed."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def at_most(hits: int, of: int, chance: float) -> float:
    """Return the exact chance of so few hits, or fewer, in so many tries of this chance."""
    return fsum(_exactly(n, of, chance) for n in range(hits + 1))


def _exactly(hits: int, of: int, chance: float) -> float:
    if chance in (0, 1):
        return float(hits == of * chance)
    # In logarithms: the ways to choose from a thousand are more than a float can hold.
    ways = lgamma(of + 1) - lgamma(hits + 1) - lgamma(of - hits + 1)
    return exp(ways + hits * log(chance) + (of - hits) * log1p(-chance))


LOCALISING = frozenset({"replay", "baseline", "localise"})
"""The phases until a first suspect is named: rivals do nothing but this."""
_ENOUGH, _RARELY = 30, 0.05


@dataclass(frozen=True, slots=True)
class Scored:
    """One instance, what the engine claims of it, and how that compares with its truth.

    Attributes:
        instance: the recorded run.
        claim: what the engine claims.
        calls: the live calls it took.
        localising: those of them until it had a first suspect.
        forks: the forks it took.
        uncovered: the intervals it printed that do not cover the exact value.
    """

    instance: Instance
    claim: Claim
    calls: int
    localising: int
    forks: int
    uncovered: tuple[Interval, ...]

    @property
    def right(self) -> bool:
        """Whether the full verdict is right: its kind, everybody it names, and nobody else."""
        claim = self.claim
        answers = self.instance.truth.answers
        return any(one.is_given_by(claim.kind, claim.units, claim.mediators) for one in answers)

    @property
    def found(self) -> bool:
        """Whether the first suspect is the one whose change of the risk is largest, for good.

        Where there is no such unit, to be undecided is right, whoever is looked at first.
        """
        truth, claim = self.instance.truth, self.claim
        nobody = None in truth.decisive and claim.kind in INNOCENT
        return nobody or claim.decisive in truth.decisive

    @property
    def accuses(self) -> bool:
        """Whether somebody is named who has no part in it."""
        claim = self.claim
        return self.instance.truth.accuses_falsely(claim.kind, claim.units, claim.decisive)


@dataclass(frozen=True, slots=True)
class Cell:
    """A case at a size: every seed of it, and what the rivals made of the same runs.

    Attributes:
        case: the case.
        size: how many steps its runs have.
        scored: one for each seed.
        rivals: by rule and forks a step, one pick for each seed.
    """

    case: Case
    size: int
    scored: Sequence[Scored]
    rivals: Mapping[tuple[str, int], Sequence[Pick]]

    @property
    def rights(self) -> int:
        """How many full verdicts are right."""
        return sum(one.right for one in self.scored)

    @property
    def finds(self) -> int:
        """How many first suspects are right."""
        return sum(one.found for one in self.scored)

    @property
    def accusations(self) -> int:
        """How many verdicts name somebody who has no part in it."""
        return sum(one.accuses for one in self.scored)

    @property
    def holds(self) -> bool:
        """Whether the acceptance rule of the case holds."""
        if self.case.free and any(one.calls for one in self.scored):
            return False
        return accepted(self.rights, len(self.scored), self.case.rule)

    def found_by(self, rival: str, each: int) -> int:
        """How many steps a rival finds with so many forks at each."""
        taken = zip(self.scored, self.rivals[rival, each], strict=True)
        return sum(pick.step in one.instance.truth.decisive for one, pick in taken)


def accepted(hits: int, of: int, rule: float) -> bool:
    """Return whether so many hits meet a rule.

    From 30 tries on their share has to. Fewer tries cannot tell that finely: then a miss is held
    against it where an engine that just meets the rule would rarely do so badly.
    """
    if of >= _ENOUGH:
        return hits >= of * rule - 1e-9
    return at_most(hits, of, rule) >= _RARELY


def score(
    case: Case,
    size: int,
    seeds: Iterable[int],
    engine: Engine,
    tell: Callable[[int], None] = lambda seed: None,
) -> Cell:
    """Run an engine, and the rivals, on a case at a size: one recorded run for each seed."""
    scored: list[Scored] = []
    rivals: dict[tuple[str, int], list[Pick]] = {}
    for seed in seeds:
        tell(seed)
        instance = case.instance(size, seed)
        scored.append(scored_once(instance, engine))
        simulation = Simulation(instance.recorded, chance(f"{instance.name}/rivals"))
        for name, each, pick in picks(simulation):
            rivals.setdefault((name, each), []).append(pick)
    return Cell(case, size, scored, rivals)


def scored_once(instance: Instance, engine: Engine) -> Scored:
    """Run an engine on one recorded run, and compare what it says with the truth."""
    simulation = Simulation(instance.recorded, chance(f"{instance.name}/world"))
    claim, ledger = drive(engine, simulation, chance(f"{instance.name}/engine"))
    uncovered = tuple(interval for interval in claim.intervals if not interval.covers(simulation))
    localising = sum(n for phase, n in ledger.calls.items() if phase in LOCALISING)
    return Scored(instance, claim, simulation.calls, localising, ledger.forks, uncovered)


def calls_of(scored: Iterable[Scored]) -> tuple[int, int]:
    """Return the median of the live calls, and their 90th percentile."""
    calls = [one.calls for one in scored]
    return quantile(calls, 0.5), quantile(calls, 0.9)


SHIPPED = 10
"""How many forks at each step others make unless told otherwise."""
ENOUGH = 0.95
"""The share of first suspects that have to be right."""


@dataclass(frozen=True, slots=True)
class Rivalry:
    """What a rule of others comes to.

    Attributes:
        rule: its name.
        found: the share of steps it finds with 10 forks at each step.
        calls: the live calls this takes, at the median.
        each: the fewest forks at each step from which on it finds 95 %; None if it never does.
        enough: the live calls that takes, at the median.
    """

    rule: str
    found: float
    calls: int
    each: int | None
    enough: int | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Runs of one size that have a culprit, in all cases together.

    Attributes:
        size: how many steps they have.
        runs: how many there are.
        found: the share of first suspects that are right.
        suspect: the live calls until the first suspect is named, at the median.
        verdict: the live calls until the full verdict, at the median.
        rivals: the rules of others.
    """

    size: int
    runs: int
    found: float
    suspect: int
    verdict: int
    rivals: tuple[Rivalry, ...]

    def rival(self, rule: str) -> Rivalry:
        """Return what one rule comes to."""
        return next(rival for rival in self.rivals if rival.rule == rule)


def standings(cells: Sequence[Cell]) -> list[Standing]:
    """Return how the engine stands at each size, over the cells whose runs have a culprit."""
    culprits = [cell for cell in cells if None not in cell.scored[0].instance.truth.decisive]
    sizes = sorted({cell.size for cell in culprits if cell.case.size is None})
    return [_standing(size, [cell for cell in culprits if cell.size == size]) for size in sizes]


def _standing(size: int, cells: Sequence[Cell]) -> Standing:
    scored = [one for cell in cells for one in cell.scored]
    return Standing(
        size,
        len(scored),
        sum(one.found for one in scored) / len(scored),
        quantile([one.localising for one in scored], 0.5),
        quantile([one.calls for one in scored], 0.5),
        tuple(_rivalry(rule, cells, len(scored)) for rule in RIVALS),
    )


def _rivalry(rule: str, cells: Sequence[Cell], runs: int) -> Rivalry:
    share = {each: sum(cell.found_by(rule, each) for cell in cells) / runs for each in LADDER}
    calls = {
        each: quantile([pick.calls for cell in cells for pick in cell.rivals[rule, each]], 0.5)
        for each in LADDER
    }
    steady = None
    for each in reversed(LADDER):
        if share[each] < ENOUGH:
            break
        steady = each
    enough = None if steady is None else calls[steady]
    return Rivalry(rule, share[SHIPPED], calls[SHIPPED], steady, enough)
