"""The state of a blame in progress: the trials so far, and how to request more."""

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
"""The held and the given units of a probe. Trials of one arm are throws of the same coin."""


@dataclass(slots=True)
class Tally:
    """The outcomes of one arm."""

    failures: int = 0
    passes: int = 0
    undefined: int = 0

    @property
    def trials(self) -> int:
        """Number of trials with an outcome."""
        return self.failures + self.passes

    @property
    def tried(self) -> int:
        """Number of all trials, with or without an outcome."""
        return self.trials + self.undefined

    @property
    def rate(self) -> float | None:
        """Failures divided by trials, 0 to 1; None without trials."""
        return self.failures / self.trials if self.trials else None

    @property
    def count(self) -> Count:
        """The pair (failures, trials)."""
        return self.failures, self.trials

    @property
    def doubtful(self) -> bool:
        """Whether more than one trial in five had no outcome."""
        return self.undefined * 5 > self.tried

    def add(self, trial: Trial) -> None:
        """Count one trial by its outcome."""
        if trial.undefined is not None or trial.failed is None:
            self.undefined += 1
        elif trial.failed:
            self.failures += 1
        else:
            self.passes += 1


@dataclass(slots=True)
class Evidence:
    """All trials of a blame, in the order requested."""

    trials: list[Trial] = field(default_factory=list)
    _tallies: dict[Arm, Tally] = field(default_factory=dict)
    _redrawn: dict[int, Tally] = field(default_factory=dict)

    def add(self, trials: Iterable[Trial]) -> None:
        """Add trials, and count them by arm and by unit."""
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
        """Return a copy of the outcomes of a probe's arm so far; later trials do not change it."""
        counts = self._tallies.get(arm(probe))
        return Tally(counts.failures, counts.passes, counts.undefined) if counts else Tally()

    def changed(self, unit: int) -> Count:
        """Return (changes, draws) of a unit that was drawn again in its recorded context."""
        return self._redrawn.get(unit, Tally()).count

    def crisp(self) -> bool:
        """Return whether the outcomes of every arm agree, over at least 8 trials in all."""
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
    """Return the arm that a probe belongs to."""
    return probe.held, probe.given


def counted(trials: Iterable[Trial]) -> Tally:
    """Count some trials by their outcomes."""
    tally = Tally()
    for trial in trials:
        tally.add(trial)
    return tally


Found = TypeVar("Found")
Asking = Generator[list[Probe], list[Trial], Found]
"""Yields batches of probes, is sent their trials in the same order, and returns a result."""

Chain = tuple[frozenset[int], ...]
"""The units kept at each position of a curve, from none to all; each set contains the last one."""

_ODDS = 80.0
_MOST = 24
_BLIND = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """The progress of a blame, as shown to the user.

    Attributes:
        phase: name of the current phase.
        unit: the likeliest decisive unit so far; None for none.
        chance: its probability.
    """

    phase: str
    unit: int | None
    chance: float


@dataclass(frozen=True, slots=True)
class World:
    """What differs from the recorded run in every probe of a search.

    Attributes:
        base: units held at every position.
        given: pairs (unit, trial): the unit answers as it did in that earlier trial.
        free: units that are never held; they respond to what came before them.
    """

    base: frozenset[int] = frozenset()
    given: tuple[tuple[int, int], ...] = ()
    free: frozenset[int] = frozenset()

    def probe(self, kept: Iterable[int], purpose: str = "curve") -> Probe:
        """Return the probe that keeps some units in this world."""
        given = {unit for unit, _ in self.given}
        return Probe((self.base | frozenset(kept)) - self.free - given, self.given, None, purpose)

    def sides(self, chain: Chain, step: int, purpose: str = "curve") -> tuple[Probe, Probe]:
        """Return two probes: one that keeps a step of a chain, and one that draws it again."""
        return self.probe(chain[step + 1], purpose), self.probe(chain[step], purpose)

    def holding(self, units: Iterable[int]) -> World:
        """Return this world with more units held at every position."""
        return replace(self, base=self.base | frozenset(units))


RECORDED = World()


@dataclass(slots=True)
class Inquiry:
    """The state that all phases share.

    Attributes:
        costs: cost of each unit in the recording.
        settings: thresholds and sample sizes.
        random: the only source of randomness of the engine.
        watch: called with the progress of the blame.
        evidence: the trials so far.
        chain: the positions of the curve, as last refined.
        belief: the posterior of the recorded run's curve, on the positions of `chain`.
        phase: name of the current phase.
        settled: number of trials when the first search ended; the drift control compares the trials
            before and after it. None until then.
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
        """Number of units."""
        return len(self.costs)

    @property
    def all(self) -> frozenset[int]:
        """The set of all units."""
        return frozenset(range(self.size))

    @property
    def narrow(self) -> float:
        """The level of each interval such that those of all positions hold at once."""
        return simultaneous(self.settings.level, self.size)

    def price(self, probe: Probe) -> float:
        """Return the expected cost of a probe, in costs of an average unit; at least 0.25."""
        live = self.all - probe.held - {unit for unit, _ in probe.given}
        whole = sum(self.costs)
        mean = whole / self.size
        cost = sum(self.costs[unit] for unit in sorted(live)) / mean if whole else len(live)
        return max(0.25, cost)

    def ask(self, probes: Sequence[Probe]) -> Asking[list[Trial]]:
        """Request probes, record their trials, and return them."""
        try:
            trials = yield list(probes)
        except Exhausted as exhausted:
            self.evidence.add(exhausted.done)
            raise
        self.evidence.add(trials)
        return trials

    def repeat(self, probe: Probe, times: int) -> Asking[None]:
        """Request one probe a number of times."""
        while times > 0:
            size = min(times, self.pace())
            yield from self.ask([probe] * size)
            times -= size

    def reach(self, probe: Probe, trials: int) -> Asking[Tally]:
        """Request a probe until its arm has `trials` trials, with or without an outcome."""
        tally = self.evidence.tally(probe)
        yield from self.repeat(probe, trials - tally.tried)
        return self.evidence.tally(probe)

    def mostly_fails(self, probe: Probe, low: float = 0.25, high: float = 0.75) -> Asking[bool]:
        """Return whether a probe fails at rate `high` rather than `low`, in as few forks as needed.

        The sequential probability ratio test of Wald (1945), at odds of 80. If 24 trials do not
        decide it, the likelier rate is the answer.
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
        """Return how many probes to request at once: one while each outcome may be decisive."""
        return 1 if self.evidence.crisp() else self.settings.batch

    def enter(self, phase: str) -> None:
        """Begin a phase and report it."""
        self.phase = phase
        self.tell()

    def tell(self) -> None:
        """Report the progress of the blame to `watch`."""
        unit, chance = None, 0.0
        if self.belief is not None:
            step, chance = self.belief.chances[0]
            unit = None if step is None else first_unit(self.chain, step)
        self.watch(Standing(self.phase, unit, chance))


def prefixes(units: int) -> Chain:
    """Return the chain that keeps one more unit at each position: `units` + 1 sets."""
    return tuple(frozenset(range(kept)) for kept in range(units + 1))


def members(chain: Chain, step: int) -> tuple[int, ...]:
    """Return the units that a step of a chain adds, in ascending order."""
    return tuple(sorted(chain[step + 1] - chain[step]))


def first_unit(chain: Chain, step: int) -> int:
    """Return the first of the units that a step of a chain adds."""
    return members(chain, step)[0]


def refined(chain: Chain, step: int) -> Chain:
    """Return the chain with one of its steps split into single units."""
    inner = [
        chain[step] | frozenset(members(chain, step)[:count])
        for count in range(1, len(members(chain, step)))
    ]
    return (*chain[: step + 1], *inner, *chain[step + 1 :])


def bordered(units: int, groups: Sequence[Collection[int]]) -> Chain:
    """Return the chain that keeps one more group at each position, ordered by their first units.

    Raises:
        ValueError: the groups are not a partition of the units.
    """
    if sorted(unit for group in groups for unit in group) != list(range(units)):
        raise ValueError(
            f"groups must hold each of the units 0..{units - 1} exactly once (got {groups})"
        )
    chain = [frozenset[int]()]
    for group in sorted((group for group in groups if group), key=min):
        chain.append(chain[-1] | frozenset(group))
    return tuple(chain)
