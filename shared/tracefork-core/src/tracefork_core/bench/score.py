"""Scores an engine on planted cases over many seeds, beside the rules of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracefork_core.bench.cases import Case, Instance
from tracefork_core.bench.driving import Engine, Interval, Said, drive
from tracefork_core.bench.quantiles import at_most, quantile
from tracefork_core.bench.rivals import Pick, picks
from tracefork_core.bench.rng import chance
from tracefork_core.bench.truth import INNOCENT
from tracefork_core.bench.world import World

LOCALISING = frozenset({"replay", "baseline", "localise"})
"""The phases until a first suspect is named: rivals do nothing but this."""
_ENOUGH, _RARELY = 30, 0.05


@dataclass(frozen=True, slots=True)
class Scored:
    """One instance, what the engine said of it, and how that compares with its truth.

    Attributes:
        instance: the recorded run.
        said: what the engine said.
        calls: the live calls it took.
        localising: those of them until it had a first suspect.
        forks: the forks it took.
        uncovered: the intervals it printed that do not cover the exact value.
    """

    instance: Instance
    said: Said
    calls: int
    localising: int
    forks: int
    uncovered: tuple[Interval, ...]

    @property
    def right(self) -> bool:
        """Whether the full verdict is right: its kind, everybody it names, and nobody else."""
        said = self.said
        answers = self.instance.truth.answers
        return any(one.is_given_by(said.kind, said.units, said.mediators) for one in answers)

    @property
    def found(self) -> bool:
        """Whether the first suspect is the one whose change of the risk is largest, for good.

        Where there is no such unit, to be undecided is right, whoever is looked at first.
        """
        truth, said = self.instance.truth, self.said
        nobody = None in truth.decisive and said.kind in INNOCENT
        return nobody or said.decisive in truth.decisive

    @property
    def accuses(self) -> bool:
        """Whether somebody is named who has no part in it."""
        said = self.said
        return self.instance.truth.accuses_falsely(said.kind, said.units, said.decisive)


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
        world = World(instance.recorded, chance(f"{instance.name}/rivals"))
        for name, each, pick in picks(world):
            rivals.setdefault((name, each), []).append(pick)
    return Cell(case, size, scored, rivals)


def scored_once(instance: Instance, engine: Engine) -> Scored:
    """Run an engine on one recorded run, and compare what it says with the truth."""
    world = World(instance.recorded, chance(f"{instance.name}/world"))
    said, ledger = drive(engine, world, chance(f"{instance.name}/engine"))
    uncovered = tuple(interval for interval in said.intervals if not interval.covers(world))
    localising = sum(n for phase, n in ledger.calls.items() if phase in LOCALISING)
    return Scored(instance, said, world.calls, localising, ledger.forks, uncovered)


def calls_of(scored: Iterable[Scored]) -> tuple[int, int]:
    """Return the median of the live calls, and their 90th percentile."""
    calls = [one.calls for one in scored]
    return quantile(calls, 0.5), quantile(calls, 0.9)
