"""One blame in progress: what is known, and how more is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log
from random import Random
from typing import TypeVar

from tracefork_core.blaming.engine.curve import Belief
from tracefork_core.blaming.engine.intervals import Count, simultaneous
from tracefork_core.blaming.engine.probe import Exhausted, Probe, Settings, Trial

Arm = tuple[frozenset[int], tuple[tuple[int, int], ...]]
"""What is held and given: trials of one arm are throws of one coin."""


@dataclass(slots=True)
class Tally:
    """The outcomes of one arm."""

    failures: int = 0
    passes: int = 0
    undefined: int = 0

    @property
    def trials(self) -> int:
        """Those with an outcome."""
        return self.failures + self.passes

    @property
    def tried(self) -> int:
        """All of them, with an outcome or without."""
        return self.trials + self.undefined

    @property
    def rate(self) -> float | None:
        """Failures by trials; None without trials."""
        return self.failures / self.trials if self.trials else None

    @property
    def count(self) -> Count:
        """Failures and trials."""
        return self.failures, self.trials

    @property
    def doubtful(self) -> bool:
        """Whether more than one in five had no outcome."""
        return self.undefined * 5 > self.tried

    def add(self, trial: Trial) -> None:
        """Count one trial."""
        if trial.undefined is not None or trial.failed is None:
            self.undefined += 1
        elif trial.failed:
            self.failures += 1
        else:
            self.passes += 1


@dataclass(slots=True)
class Evidence:
    """All trials of a blame, in the order asked."""

    trials: list[Trial] = field(default_factory=list)
    _tallies: dict[Arm, Tally] = field(default_factory=dict)
    _redrawn: dict[int, Tally] = field(default_factory=dict)

    def add(self, trials: Iterable[Trial]) -> None:
        """Enter trials."""
        for trial in trials:
            self.trials.append(trial)
            if trial.probe.until is None:
                self._tallies.setdefault(arm(trial.probe), Tally()).add(trial)
            if not trial.probe.given:
                for unit, same in sorted(trial.same.items()):
                    tally = self._redrawn.setdefault(unit, Tally())
                    tally.passes += same
                    tally.failures += not same

    def tally(self, probe: Probe) -> Tally:
        """Return what the arm of a probe came to; what is returned is not kept up."""
        found = self._tallies.get(arm(probe))
        return Tally(found.failures, found.passes, found.undefined) if found else Tally()

    def changed(self, unit: int) -> Count:
        """Return how often a unit, drawn again in its recorded place, answered otherwise."""
        return self._redrawn.get(unit, Tally()).count

    def crisp(self) -> bool:
        """Return whether every arm has always come to the same, and enough was seen to say so."""
        live = [tally for (held, _), tally in self._tallies.items() if tally.trials]
        return sum(tally.trials for tally in live) >= 8 and all(
            not (tally.failures and tally.passes) for tally in live
        )

    def of(self, probe: Probe, since: int = 0) -> Iterator[Trial]:
        """Yield the trials of a probe's arm from the `since`-th trial on."""
        wanted = arm(probe)
        for trial in self.trials[since:]:
            if trial.probe.until is None and arm(trial.probe) == wanted:
                yield trial


def arm(probe: Probe) -> Arm:
    """Return what is held and given in a probe."""
    return probe.held, probe.given


def counted(trials: Iterable[Trial]) -> Tally:
    """Return what some trials came to."""
    tally = Tally()
    for trial in trials:
        tally.add(trial)
    return tally


Found = TypeVar("Found")
Asking = Generator[list[Probe], list[Trial], Found]
"""Asks for batches of probes, is sent their trials in order, and returns what it found."""

Chain = tuple[frozenset[int], ...]
"""The units that are kept at each position of a curve: each position keeps those before it."""

_ODDS = 80.0
_MOST = 24
_BLIND = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a blame is, for whoever watches.

    Attributes:
        phase: what is being asked.
        unit: the likeliest decisive unit so far; None for none.
        chance: how sure that is.
    """

    phase: str
    unit: int | None
    chance: float


@dataclass(frozen=True, slots=True)
class World:
    """What is unlike the recorded run in every probe of a search.

    Attributes:
        base: held at every position.
        given: units that answer as in an earlier trial, by that trial's number.
        free: never held: they follow what came before them.
    """

    base: frozenset[int] = frozenset()
    given: tuple[tuple[int, int], ...] = ()
    free: frozenset[int] = frozenset()

    def probe(self, kept: Iterable[int], purpose: str = "curve") -> Probe:
        """Return the probe that keeps some units in this world."""
        given = {unit for unit, _ in self.given}
        return Probe((self.base | frozenset(kept)) - self.free - given, self.given, None, purpose)

    def sides(self, chain: Chain, step: int, purpose: str = "curve") -> tuple[Probe, Probe]:
        """Return the probe that keeps a step of a chain, and the one that draws it again."""
        return self.probe(chain[step + 1], purpose), self.probe(chain[step], purpose)

    def holding(self, units: Iterable[int]) -> World:
        """Return this world with more units held throughout."""
        return replace(self, base=self.base | frozenset(units))


RECORDED = World()


@dataclass(slots=True)
class Inquiry:
    """What all phases share.

    Attributes:
        costs: what each unit cost when it was recorded.
        settings: the measures.
        random: the only chance the engine uses.
        watch: told where the blame stands.
        evidence: the trials so far.
        chain: the positions of the curve, as last refined.
        belief: what is believed of the recorded run's curve, on the positions of `chain`.
        phase: what is being asked.
        settled: trials made when the decisive step was first believed in: what came later is late.
    """

    costs: Sequence[float]
    settings: Settings
    random: Random
    watch: Callable[[Standing], None]
    evidence: Evidence = field(default_factory=Evidence)
    chain: Chain = ()
    belief: Belief | None = None
    phase: str = "replay"
    settled: int | None = None

    @property
    def size(self) -> int:
        """How many units there are."""
        return len(self.costs)

    @property
    def all(self) -> frozenset[int]:
        """Every unit."""
        return frozenset(range(self.size))

    @property
    def narrow(self) -> float:
        """The level of each interval, where those of all positions hold at once."""
        return simultaneous(self.settings.level, self.size)

    def price(self, probe: Probe) -> float:
        """Return the expected cost of a probe, in that of a mean unit: more than nothing."""
        live = self.all - probe.held - {unit for unit, _ in probe.given}
        whole = sum(self.costs)
        mean = whole / self.size
        cost = sum(self.costs[unit] for unit in sorted(live)) / mean if whole else len(live)
        return max(0.25, cost)

    def ask(self, probes: Sequence[Probe]) -> Asking[list[Trial]]:
        """Have probes carried out, and enter what they come to."""
        try:
            trials = yield list(probes)
        except Exhausted as exhausted:
            self.evidence.add(exhausted.done)
            raise
        self.evidence.add(trials)
        return trials

    def repeat(self, probe: Probe, times: int) -> Asking[None]:
        """Have one probe carried out some times."""
        while times > 0:
            size = min(times, self.pace())
            yield from self.ask([probe] * size)
            times -= size

    def reach(self, probe: Probe, trials: int) -> Asking[Tally]:
        """Have a probe carried out until its arm has so many trials, with outcomes or without."""
        tally = self.evidence.tally(probe)
        yield from self.repeat(probe, trials - tally.tried)
        return self.evidence.tally(probe)

    def mostly_fails(self, probe: Probe, low: float = 0.25, high: float = 0.75) -> Asking[bool]:
        """Return whether a probe fails at the high rate rather than the low, after as few as tell.

        The sequential probability ratio test of Wald (1945); the nearer one, where it does not end.
        """
        fail, good = log(high / low), log((1 - high) / (1 - low))
        while True:
            tally = self.evidence.tally(probe)
            ratio = tally.failures * fail + tally.passes * good
            blind = not tally.trials and tally.undefined >= _BLIND
            if abs(ratio) >= log(_ODDS) or blind or tally.tried >= _MOST:
                return ratio > 0
            least = max(1, ceil((log(_ODDS) - abs(ratio)) / max(fail, -good)))
            yield from self.ask([probe] * min(least, self.settings.batch, _MOST - tally.tried))

    def pace(self) -> int:
        """Return how many probes to ask for at once: one, where each answer may be the last."""
        return 1 if self.evidence.crisp() else self.settings.batch

    def enter(self, phase: str) -> None:
        """Say what is asked from here on."""
        self.phase = phase
        self.tell()

    def tell(self) -> None:
        """Tell who watches where the blame stands."""
        unit, chance = None, 0.0
        if self.belief is not None:
            step, chance = self.belief.chances[0]
            unit = None if step is None else first_unit(self.chain, step)
        self.watch(Standing(self.phase, unit, chance))


def prefixes(units: int) -> Chain:
    """Return the chain that keeps one unit more at each position."""
    return tuple(frozenset(range(kept)) for kept in range(units + 1))


def members(chain: Chain, step: int) -> tuple[int, ...]:
    """Return the units that a step of a chain adds, in order."""
    return tuple(sorted(chain[step + 1] - chain[step]))


def first_unit(chain: Chain, step: int) -> int:
    """Return the first of the units that a step of a chain adds."""
    return members(chain, step)[0]


def refined(chain: Chain, step: int) -> Chain:
    """Return the chain with one of its steps taken unit by unit."""
    inner = [
        chain[step] | frozenset(members(chain, step)[:count])
        for count in range(1, len(members(chain, step)))
    ]
    return (*chain[: step + 1], *inner, *chain[step + 1 :])


def bordered(units: int, groups: Sequence[Collection[int]]) -> Chain:
    """Return the chain that keeps one group more at each position.

    Raises:
        ValueError: the groups are not a partition of the units.
    """
    if sorted(unit for group in groups for unit in group) != list(range(units)):
        raise ValueError(
            f"groups: each of the units 0..{units - 1} must be in exactly one, these are {groups}"
        )
    chain = [frozenset[int]()]
    for group in sorted((group for group in groups if group), key=min):
        chain.append(chain[-1] | frozenset(group))
    return tuple(chain)
