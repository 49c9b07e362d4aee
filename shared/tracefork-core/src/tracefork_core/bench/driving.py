"""Runs an engine in a world: probes go one way, trials the other, and every call is counted."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from random import Random

from tracefork_core.bench.world import World
from tracefork_core.blaming.engine.probe import Exhausted, Probe, Trial


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

    def covers(self, world: World) -> bool:
        """Return whether the exact value lies inside."""
        value = world.risk(range(self.position))
        if self.since is not None:
            value -= world.risk(range(self.since))
        return self.low - 1e-9 <= value <= self.high + 1e-9


@dataclass(frozen=True, slots=True)
class Said:
    """What an engine says in the end, as far as it is held to truth.

    Attributes:
        kind: of the verdict.
        units: whom it names.
        mediators: who passed the fault on.
        decisive: the unit that doomed the run, or most likely did; None for nobody.
        intervals: all that are printed about the curve.
    """

    kind: str
    units: tuple[int, ...] = ()
    mediators: tuple[int, ...] = ()
    decisive: int | None = None
    intervals: tuple[Interval, ...] = ()


Asking = Generator[list[Probe], list[Trial], Said]
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
    engine: Engine, world: World, random: Random, budget: int | None = None
) -> tuple[Said, Ledger]:
    """Run an engine to its end.

    Args:
        engine: what is driven.
        world: carries its probes out.
        random: the engine's own.
        budget: how many live calls there are; no probe that would take more is carried out.
    """
    ledger = Ledger()
    asking = engine(world.costs, random, ledger.reach)
    try:
        probes = next(asking)
        while True:
            trials: list[Trial] = []
            for probe in probes:
                if budget is not None and ledger.total + world.price(probe) > budget:
                    break
                trials.append(world.try_one(probe))
                ledger.enter(trials[-1])
            if len(trials) == len(probes):
                probes = asking.send(trials)
            else:
                ledger.exhausted = True
                probes = asking.throw(Exhausted(trials))
    except StopIteration as done:
        said: Said = done.value
        return said, ledger
