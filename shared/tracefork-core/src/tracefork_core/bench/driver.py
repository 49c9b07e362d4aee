"""Runs an engine on a simulated run: probes go one way, trials the other, and calls are counted."""

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
    """An interval as it is printed: of the risk after a prefix, or of the change between two.

    Attributes:
        name: of what it is.
        position: how many units are held.
        low: its lower end.
        high: its upper end.
        since: the shorter prefix whose risk is subtracted; None for the risk itself.
        seen: the failures, the passes, and the forks without an outcome it is made from.
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
    """What an engine says in the end, as far as it is held to truth.

    Attributes:
        kind: of the verdict.
        units: whom it names.
        mediators: who passed the fault on.
        decisive: the unit that made the run fail, or most likely did; None if no unit did.
        intervals: all that are printed about the curve.
    """

    kind: str
    units: tuple[int, ...] = ()
    mediators: tuple[int, ...] = ()
    decisive: int | None = None
    intervals: tuple[Interval, ...] = ()


Asking = Generator[list[Probe], list[Trial], Claim]
Engine = Callable[[Sequence[float], Random, Callable[[str], None]], Asking]
"""Takes what each unit cost when it was recorded, a source of chance of its own, and who is told
what it is at."""


@dataclass(slots=True)
class Ledger:
    """What was spent on an engine.

    Attributes:
        phase: what the engine says it is at.
        calls: live calls, by phase.
        forks: how many probes were carried out.
        exhausted: whether it was told that the budget is used up.
    """

    phase: str = "replay"
    calls: dict[str, int] = field(default_factory=dict)
    forks: int = 0
    exhausted: bool = False

    @property
    def total(self) -> int:
        """All live calls."""
        return sum(self.calls.values())

    def reach(self, phase: str) -> None:
        """Note what the engine is at from here on."""
        self.phase = phase

    def enter(self, trial: Trial) -> None:
        """Enter what a trial took."""
        self.calls[self.phase] = self.calls.get(self.phase, 0) + trial.calls
        self.forks += 1


def drive(
    engine: Engine, simulation: Simulation, random: Random, budget: int | None = None
) -> tuple[Claim, Ledger]:
    """Run an engine to its end.

    Args:
        engine: what is driven.
        simulation: carries its probes out.
        random: the engine's own.
        budget: how many live calls there are; no probe that would take more is carried out.
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
    """Ask as blame does with its defaults, and say what it says."""
    from tracefork_core.blaming.engine.engine import blame

    result = yield from blame(costs, random, watch=lambda standing: reach(standing.phase))
    return claim_of(result)


def claim_of(result: Result) -> Claim:
    """Return what of a result is held to truth."""
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
