"""Run an engine on a simulated run, and count the live calls of its probes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from tracefork_core.bench.simulation import Simulation
from tracefork_core.blaming.engine.probe import Exhausted, Probe, Trial

if TYPE_CHECKING:
    from tracefork_core.blaming.engine.result import Result


@dataclass(frozen=True, slots=True)
class Interval:
    """A reported interval: of the risk after a prefix, or of the change between two prefixes.

    Attributes:
        name: what it is an interval of.
        position: number of units held.
        low: lower end.
        high: upper end.
        since: length of the shorter prefix whose risk is subtracted; None for the risk itself.
        seen: numbers of failures, passes, and forks without an outcome behind it.
    """

    name: str
    position: int
    low: float
    high: float
    since: int | None = None
    seen: tuple[int, int, int] | None = None

    def covers(self, simulation: Simulation) -> bool:
        """Return whether the exact value lies inside."""
        value = simulation.risk(range(self.position))
        if self.since is not None:
            value -= simulation.risk(range(self.since))
        return self.low - 1e-9 <= value <= self.high + 1e-9


@dataclass(frozen=True, slots=True)
class Claim:
    """The part of an engine's result that is compared with the truth.

    Attributes:
        kind: kind of the verdict.
        units: the units it names.
        mediators: the units that passed the fault on.
        decisive: the unit that made the run fail, or most likely did; None for no unit.
        intervals: all intervals that it reports.
    """

    kind: str
    units: tuple[int, ...] = ()
    mediators: tuple[int, ...] = ()
    decisive: int | None = None
    intervals: tuple[Interval, ...] = ()


Asking = Generator[list[Probe], list[Trial], Claim]
Engine = Callable[[Sequence[float], Random, Callable[[str], None]], Asking]
"""Takes the recorded cost of each unit, a random generator of its own, and a function to call with
the name of each phase."""


@dataclass(slots=True)
class Ledger:
    """What an engine spent.

    Attributes:
        phase: the current phase of the engine.
        calls: number of live calls by phase.
        forks: number of probes run.
        exhausted: whether the budget was used up.
    """

    phase: str = "replay"
    calls: dict[str, int] = field(default_factory=dict)
    forks: int = 0
    exhausted: bool = False

    @property
    def total(self) -> int:
        """Number of all live calls."""
        return sum(self.calls.values())

    def reach(self, phase: str) -> None:
        """Begin a phase: later calls count towards it."""
        self.phase = phase

    def enter(self, trial: Trial) -> None:
        """Add the live calls of a trial to the current phase."""
        self.calls[self.phase] = self.calls.get(self.phase, 0) + trial.calls
        self.forks += 1


def drive(
    engine: Engine, simulation: Simulation, random: Random, budget: int | None = None
) -> tuple[Claim, Ledger]:
    """Run an engine to its end.

    Args:
        engine: the engine to run.
        simulation: runs its probes.
        random: random generator of the engine.
        budget: maximum number of live calls; a probe that would exceed it is not run. None for no
            limit.
    """
    ledger = Ledger()
    asking = engine(simulation.costs, random, ledger.reach)
    try:
        probes = next(asking)
        while True:
            trials: list[Trial] = []
            for probe in probes:
                if budget is not None and ledger.total + simulation.price(probe) > budget:
                    break
                trials.append(simulation.try_one(probe))
                ledger.enter(trials[-1])
            if len(trials) == len(probes):
                probes = asking.send(trials)
            else:
                ledger.exhausted = True
                probes = asking.throw(Exhausted(trials))
    except StopIteration as done:
        claim: Claim = done.value
        return claim, ledger


def blame_engine(costs: Sequence[float], random: Random, reach: Callable[[str], None]) -> Asking:
    """Run the engine of blame with its default settings."""
    from tracefork_core.blaming.engine.engine import blame

    result = yield from blame(costs, random, watch=lambda standing: reach(standing.phase))
    return claim_of(result)


def claim_of(result: Result) -> Claim:
    """Return the parts of a result that are compared with the truth."""
    verdict, decisive = result.verdict, result.decisive
    return Claim(
        verdict.kind,
        verdict.units,
        verdict.mediators,
        None if decisive is None else decisive.unit,
        tuple(_intervals(result)),
    )


def _intervals(result: Result) -> Iterator[Interval]:
    for point in result.curve:
        seen = point.failures, point.forks - point.failures, point.undefined
        yield Interval("curve", point.position, *point.interval, seen=seen)
    if result.decisive is not None:
        unit = result.decisive.unit
        yield Interval("effect", unit + 1, *result.decisive.interval, since=unit)
    base = result.baseline
    seen = base.failures, base.forks - base.failures, base.undefined
    yield Interval("baseline", 0, *base.interval, seen=seen)
    for control in result.controls:
        if control.interval is None:
            continue
        if control.unit is not None:
            yield Interval(control.name, control.unit + 1, *control.interval, since=control.unit)
        elif control.name == "placebo":
            yield Interval(control.name, 0, *control.interval, since=0)
