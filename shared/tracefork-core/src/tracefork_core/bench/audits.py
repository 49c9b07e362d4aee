"""Audit groups, the budget, lost outcomes and the count of live calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracefork_core.bench.cases import CASES, Instance
from tracefork_core.bench.driver import Claim, Engine, drive
from tracefork_core.bench.planted_agent import chance, responsibility
from tracefork_core.bench.score import accepted
from tracefork_core.bench.simulation import HttpSimulation, Simulation
from tracefork_core.blaming.oracles.judge import http_library

BUDGETS = (0, 3, 20, 90, 300)
_SIZE = 16
_LOST = (0.05, 0.35), (0.2, 0.2), (0.35, 0.05)
"""Probability that a run has no outcome, if it would have passed and if it would have failed."""
_DOUBTFUL = 0.2
_SAMPLE = 5
"""Runs whose live calls are also counted at a transport, which takes 100 times as long."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of one audit.

    Attributes:
        number: row in the published table.
        name: what is checked.
        rule: share of runs that must pass, 0 to 1.
        runs: number of runs.
        misses: name of each run that did not pass.
        holds: whether enough runs passed.
    """

    number: int
    name: str
    rule: float
    runs: int
    misses: tuple[str, ...]
    holds: bool

    @property
    def words(self) -> str:
        """The number of runs that pass, and the first that does not."""
        kept = f"{self.runs - len(self.misses)} of {self.runs}"
        return kept + (f", not {self.misses[0]}" if self.misses else "")


def audits(engine: Engine, seeds: Sequence[int]) -> list[Audit]:
    """Run every audit, on one run for each seed."""
    return [
        grouped(engine, seeds),
        budgeted(engine, seeds),
        undefined(engine, seeds),
        transported(engine, seeds[:_SAMPLE]),
    ]


def grouped(engine: Engine, seeds: Iterable[int]) -> Audit:
    """Check that the group to blame is found in either order of two parallel branches."""
    outcomes = {}
    for seed in seeds:
        instance = CASES["delayed"].instance(_SIZE, seed)
        before, after = range(4), range(12, _SIZE)
        one, other = range(4, 12, 2), range(5, 12, 2)
        for order in ((before, one, other, after), (before, other, one, after)):
            name = f"{instance.name} in the order of {[unit[0] for unit in order]}"
            simulation = Simulation(instance.recorded, chance(name), units=order)
            claim, _ = drive(engine, simulation, chance(f"{name}/engine"))
            outcomes[name] = _names_the_group(claim, simulation)
    return _audit(14, "groups and parallel branches", 0.90, outcomes)


def _names_the_group(claim: Claim, simulation: Simulation) -> bool:
    curve = [simulation.risk(range(held)) for held in range(len(simulation.units) + 1)]
    shares = responsibility(curve)
    truth = shares.index(max(shares))
    return (claim.kind, claim.units, claim.decisive) == ("single", (truth,), truth)


def budgeted(engine: Engine, seeds: Iterable[int]) -> Audit:
    """Check that no call exceeds the budget, and that a verdict cut short by it is undecided."""
    outcomes = {}
    for seed in seeds:
        instance = _any(("echo", "or", "and-2", "recovery"), seed)
        for budget in BUDGETS:
            name = f"{instance.name} with {budget} calls"
            simulation = Simulation(instance.recorded, chance(name))
            claim, ledger = drive(engine, simulation, chance(f"{name}/engine"), budget)
            honest = claim.kind == "undecided" or not ledger.exhausted
            outcomes[name] = simulation.calls <= budget and honest
    return _audit(18, "the budget", 1.0, outcomes)


def undefined(engine: Engine, seeds: Iterable[int]) -> Audit:
    """Check that intervals cover the worst case of lost outcomes, and too many decide nothing."""
    outcomes = {}
    for seed in seeds:
        instance = _any(("echo", "delayed", "recovery"), seed)
        for lost in _LOST:
            name = f"{instance.name} losing {lost[0]:.0%} of passes, {lost[1]:.0%} of failures"
            simulation = Simulation(instance.recorded, chance(name), breaks=lost)
            claim, _ = drive(engine, simulation, chance(f"{name}/engine"))
            outcomes[name] = _shows_the_worst(claim) and _doubts(claim)
    return _audit(19, "forks without an outcome", 1.0, outcomes)


def _shows_the_worst(claim: Claim) -> bool:
    """Return whether each interval allows for all lost runs to have failed, and to have passed."""
    for interval in claim.intervals:
        if interval.seen is None or not sum(interval.seen):
            continue
        failures, passes, lost = interval.seen
        of = failures + passes + lost
        if not interval.low <= failures / of <= (failures + lost) / of <= interval.high:
            return False
    return True


def _doubts(claim: Claim) -> bool:
    """Return whether no step is blamed if too many runs at its positions are lost."""
    if claim.kind in ("undecided", "not reproducible") or claim.decisive is None:
        return True
    around = [near for near in claim.intervals if near.position - claim.decisive in (0, 1)]
    seen = [interval.seen for interval in around if interval.seen is not None]
    return all(lost <= _DOUBTFUL * (failures + passes + lost) for failures, passes, lost in seen)


def transported(engine: Engine, seeds: Iterable[int]) -> Audit:
    """Check that an HTTP transport counts the same live calls as the simulation, fork by fork."""
    outcomes: dict[str, bool] = {}
    library = http_library()
    for seed in seeds:
        instance = _any(("echo", "or", "recovery"), seed)
        name = f"{instance.name} at a transport"
        if library is None:
            outcomes["pip install httpx2 for this"] = False
            continue
        simulation = HttpSimulation(instance.recorded, chance(name), library)
        _, ledger = drive(engine, simulation, chance(f"{name}/engine"))
        for fork in range(simulation.forks):
            outcomes[f"{name}, fork {fork}"] = fork not in simulation.differing
        outcomes[f"{name}, all forks"] = ledger.total == simulation.calls
    return _audit(20, "live calls at an HTTP transport", 1.0, outcomes)


def _any(names: Sequence[str], seed: int) -> Instance:
    return CASES[names[seed % len(names)]].instance(_SIZE, seed)


def _audit(number: int, name: str, rule: float, outcomes: dict[str, bool]) -> Audit:
    misses = tuple(what for what, kept in outcomes.items() if not kept)
    holds = accepted(len(outcomes) - len(misses), len(outcomes), rule)
    return Audit(number, name, rule, len(outcomes), misses, holds)
