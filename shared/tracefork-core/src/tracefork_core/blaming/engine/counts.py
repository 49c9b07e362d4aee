"""What the trials came to, counted by what was held and given in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tracefork_core.blaming.engine.intervals import Count
from tracefork_core.blaming.engine.probe import Probe, Trial

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
class Book:
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
