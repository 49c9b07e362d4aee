"""Prove that a step makes a difference, from counts alone and without the change-point model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from tracefork_core.blaming.engine.evidence import Asking, Inquiry, Tally
from tracefork_core.blaming.engine.intervals import (
    Count,
    Interval,
    confidence_sequence,
    contrast,
    e_bh,
    evalue,
    log_gap_evalue,
)
from tracefork_core.blaming.engine.probe import Probe

_MOST = 30
_FAIR = 400
_NEARER = 0.8
"""The rate that is tested against the ceiling, as a fraction of the ceiling."""
_MISSED = 0.03


@dataclass(frozen=True, slots=True)
class Contrast:
    """Outcomes of runs that keep a step, and of runs that draw it again.

    Attributes:
        kept: the runs that keep it.
        live: the runs that draw it again.
    """

    kept: Tally
    live: Tally

    @property
    def effect(self) -> float:
        """Observed difference of the failure rates, -1 to 1; 0 if an arm has no outcome yet."""
        kept, live = self.kept.rate, self.live.rate
        return 0.0 if kept is None or live is None else kept - live

    @property
    def doubtful(self) -> bool:
        """Whether more than one in five runs of an arm had no outcome."""
        return self.kept.doubtful or self.live.doubtful

    @property
    def evalue(self) -> float:
        """E-value against "keeping the step does not raise the rate", in the worst case.

        The worst case assumes that runs without an outcome passed if kept and failed if live.
        """
        return evalue(log_gap_evalue(*_least(self.kept, self.live)))

    def interval(self, level: float) -> Interval:
        """Return the range of differences not refuted, whatever runs without an outcome would be.

        It lies above 0 exactly when the e-value is above 1 / level.
        """
        low, high = contrast(*_least(self.kept, self.live), level)
        if self.kept.undefined or self.live.undefined:
            before, after = _least(self.live, self.kept)
            high = contrast(after, before, level)[1]
        return low, high


def contrasted(inquiry: Inquiry, kept: Probe, live: Probe) -> Contrast:
    """Return the contrast of two arms from the trials so far."""
    return Contrast(inquiry.evidence.tally(kept), inquiry.evidence.tally(live))


def certify(inquiry: Inquiry, kept: Probe, live: Probe, among: int = 1) -> Asking[Contrast]:
    """Fork on both sides of a step in turn until the difference is proven or a limit is reached.

    Args:
        inquiry: the blame.
        kept: the probe that keeps the step.
        live: the probe that draws it again.
        among: number of steps named together, including this one: e-BH requires less evidence of
            each when there are several.
    """
    most = None
    while True:
        found = contrasted(inquiry, kept, live)
        tried = [arm.tried for arm in (found.kept, found.live)]
        most = most or min(tried) + _MOST
        if proven(inquiry, found, among) or min(tried) >= most or _hopeless(found):
            return found
        behind = kept if tried[0] < tried[1] else live
        ahead = live if behind is kept else kept
        yield from inquiry.ask([behind, ahead][: inquiry.pace()])


def proven(inquiry: Inquiry, found: Contrast, among: int = 1) -> bool:
    """Return whether keeping a step is proven to raise the rate.

    A single step is tested at the simultaneous level of all positions. One of several is proven if
    e-BH over all units rejects `among` nulls whose smallest e-value is this one.
    """
    if found.doubtful:
        return False
    if among == 1:
        return found.evalue >= 1 / inquiry.narrow
    evalues = [found.evalue] * among + [0.0] * (inquiry.size - among)
    return bool(e_bh(evalues, inquiry.settings.level))


def allowed(inquiry: Inquiry, earlier: Sequence[Probe]) -> Asking[bool]:
    """Return whether a run fails rarely enough, where a step is re-decided, for it to be named.

    The rate must be below `Settings.ceiling`; a rate that cannot be told from the ceiling does not
    count as below. If this step tosses a coin, its chances are the same from every earlier start,
    so those forks count as well.

    Far below the ceiling a confidence sequence decides first; near it, the sequential probability
    ratio test of Wald (1945). Each errs at half the level.

    Args:
        inquiry: the blame.
        earlier: the positions up to and including the one where this step is re-decided.
    """
    ceiling, level = inquiry.settings.ceiling, inquiry.settings.level / 2
    if ceiling >= 1:
        return True
    while True:
        tallies = [inquiry.evidence.tally(probe) for probe in dict.fromkeys(earlier)]
        here = tallies[-1]
        pooled = sum(tally.failures for tally in tallies), sum(tally.trials for tally in tallies)
        counts = here.count, pooled
        if any(confidence_sequence(*count, level)[1] < ceiling for count in counts):
            return True
        if any(_ratio(count, ceiling) >= log(2 / level) for count in counts):
            return True
        if _ratio(here.count, ceiling) <= log(_MISSED) or here.tried >= _FAIR:
            return False
        yield from inquiry.ask([earlier[-1]] * inquiry.pace())


def _ratio(count: Count, ceiling: float) -> float:
    """Return the log-likelihood ratio of a rate below the ceiling to the ceiling itself."""
    failures, trials = count
    near = ceiling * _NEARER
    return failures * log(near / ceiling) + (trials - failures) * log((1 - near) / (1 - ceiling))


def _hopeless(found: Contrast) -> bool:
    """Return whether more runs of an arm had no outcome than had one."""
    return any(arm.undefined > max(5, arm.trials) for arm in (found.kept, found.live))


def _least(kept: Tally, live: Tally) -> tuple[Count, Count]:
    """Return both counts as if runs without an outcome passed if kept and failed if live."""
    return (
        (kept.failures, kept.tried),
        (live.failures + live.undefined, live.tried),
    )
