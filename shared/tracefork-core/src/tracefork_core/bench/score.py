"""Score an engine on planted cases over many seeds, beside the rules of other tools."""

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
    """Return the smallest value such that at least this share of all values is at or below it."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def at_most(hits: int, of: int, chance: float) -> float:
    """Return the exact binomial probability of at most `hits` hits in `of` tries."""
    return fsum(_exactly(n, of, chance) for n in range(hits + 1))


def _exactly(hits: int, of: int, chance: float) -> float:
    if chance in (0, 1):
        return float(hits == of * chance)
    # In logarithms, since the binomial coefficient of a thousand overflows a float.
    ways = lgamma(of + 1) - lgamma(hits + 1) - lgamma(of - hits + 1)
    return exp(ways + hits * log(chance) + (of - hits) * log1p(-chance))


LOCALISING = frozenset({"replay", "baseline", "localise"})
"""The phases until a first suspect is named, which is all that rivals do."""
_ENOUGH, _RARELY = 30, 0.05


@dataclass(frozen=True, slots=True)
class Scored:
    """The claim of an engine about one instance, compared with the truth.

    Attributes:
        instance: the recorded run.
        claim: the claim of the engine.
        calls: number of live calls.
        localising: number of those until it had a first suspect.
        forks: number of forks.
        uncovered: the reported intervals that do not cover the exact value.
    """

    instance: Instance
    claim: Claim
    calls: int
    localising: int
    forks: int
    uncovered: tuple[Interval, ...]

    @property
    def right(self) -> bool:
        """Whether the full verdict is right: its kind and exactly the units it names."""
        claim = self.claim
        answers = self.instance.truth.answers
        return any(
            answer.is_given_by(claim.kind, claim.units, claim.mediators) for answer in answers
        )

    @property
    def found(self) -> bool:
        """Whether the first suspect is the unit that raised the risk most for good.

        If there is no such unit, any verdict that blames no unit is right, whatever its first
        suspect.
        """
        truth, claim = self.instance.truth, self.claim
        nobody = None in truth.decisive and claim.kind in INNOCENT
        return nobody or claim.decisive in truth.decisive

    @property
    def accuses(self) -> bool:
        """Whether the verdict blames a unit that has no part in the failure."""
        claim = self.claim
        return self.instance.truth.accuses_falsely(claim.kind, claim.units, claim.decisive)


@dataclass(frozen=True, slots=True)
class Cell:
    """The results of a case at one size, with those of the rivals on the same runs.

    Attributes:
        case: the case.
        size: number of steps of its runs.
        scored: one result for each seed.
        rivals: one pick for each seed, by rule and number of forks at each step.
    """

    case: Case
    size: int
    scored: Sequence[Scored]
    rivals: Mapping[tuple[str, int], Sequence[Pick]]

    @property
    def rights(self) -> int:
        """Number of right full verdicts."""
        return sum(result.right for result in self.scored)

    @property
    def finds(self) -> int:
        """Number of right first suspects."""
        return sum(result.found for result in self.scored)

    @property
    def accusations(self) -> int:
        """Number of verdicts that blame a unit without a part in the failure."""
        return sum(result.accuses for result in self.scored)

    @property
    def holds(self) -> bool:
        """Whether the acceptance rule of the case holds."""
        if self.case.free and any(one.calls for one in self.scored):
            return False
        return accepted(self.rights, len(self.scored), self.case.rule)

    def found_by(self, rival: str, each: int) -> int:
        """Return in how many runs a rival finds the step, with `each` forks at every step."""
        taken = zip(self.scored, self.rivals[rival, each], strict=True)
        return sum(pick.step in result.instance.truth.decisive for result, pick in taken)


def accepted(hits: int, of: int, rule: float) -> bool:
    """Return whether `hits` of `of` tries meet a rule, a share from 0 to 1.

    With 30 tries or more the observed share must meet it. Fewer tries are too coarse for that: then
    the rule fails only if an engine that just meets it would get so few hits with a probability
    below 5 %.
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
    """Run an engine and the rivals on a case at one size, on one recorded run for each seed."""
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
    """Run an engine on one recorded run, and compare its claim with the truth."""
    simulation = Simulation(instance.recorded, chance(f"{instance.name}/world"))
    claim, ledger = drive(engine, simulation, chance(f"{instance.name}/engine"))
    uncovered = tuple(interval for interval in claim.intervals if not interval.covers(simulation))
    localising = sum(n for phase, n in ledger.calls.items() if phase in LOCALISING)
    return Scored(instance, claim, simulation.calls, localising, ledger.forks, uncovered)


def calls_of(scored: Iterable[Scored]) -> tuple[int, int]:
    """Return the median and the 90th percentile of the live calls."""
    calls = [result.calls for result in scored]
    return quantile(calls, 0.5), quantile(calls, 0.9)


SHIPPED = 10
"""The number of forks at each step that other tools make by default."""
ENOUGH = 0.95
"""The share of first suspects that must be right."""


@dataclass(frozen=True, slots=True)
class Rivalry:
    """The results of another tool's rule.

    Attributes:
        rule: its name.
        found: share of steps it finds with 10 forks at each step.
        calls: median live calls for that.
        each: smallest number of forks at each step from which on it finds 95 %; None if it never
            does.
        enough: median live calls for that; None if it never does.
    """

    rule: str
    found: float
    calls: int
    each: int | None
    enough: int | None


@dataclass(frozen=True, slots=True)
class Standing:
    """The results of all runs of one size in which a step is to blame.

    Attributes:
        size: number of steps.
        runs: number of runs.
        found: share of right first suspects.
        suspect: median live calls until the first suspect is named.
        verdict: median live calls until the full verdict.
        rivals: the results of other tools' rules.
    """

    size: int
    runs: int
    found: float
    suspect: int
    verdict: int
    rivals: tuple[Rivalry, ...]

    def rival(self, rule: str) -> Rivalry:
        """Return the results of one rule."""
        return next(rival for rival in self.rivals if rival.rule == rule)


def standings(cells: Sequence[Cell]) -> list[Standing]:
    """Return the results at each size, over the cases in which a step is to blame."""
    culprits = [cell for cell in cells if None not in cell.scored[0].instance.truth.decisive]
    sizes = sorted({cell.size for cell in culprits if cell.case.size is None})
    return [_standing(size, [cell for cell in culprits if cell.size == size]) for size in sizes]


def _standing(size: int, cells: Sequence[Cell]) -> Standing:
    scored = [result for cell in cells for result in cell.scored]
    return Standing(
        size,
        len(scored),
        sum(result.found for result in scored) / len(scored),
        quantile([result.localising for result in scored], 0.5),
        quantile([result.calls for result in scored], 0.5),
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
