"""Whether a step makes the difference it is believed to make: no model, only counts."""

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
"""How far below the ceiling a rate lies that is to be told from it, as a share of it."""
_MISSED = 0.03


@dataclass(frozen=True, slots=True)
class Contrast:
    """How often a run fails with a step kept, and with that step live.

    Attributes:
        kept: the runs that keep it.
        live: the runs that draw it again.
    """

    kept: Tally
    live: Tally

    @property
    def effect(self) -> float:
        """The difference of the rates seen; 0 where an arm was never seen."""
        kept, live = self.kept.rate, self.live.rate
        return 0.0 if kept is None or live is None else kept - live

    @property
    def doubtful(self) -> bool:
        """Whether too many runs had no outcome."""
        return self.kept.doubtful or self.live.doubtful

    @property
    def evalue(self) -> float:
        """Against "keeping it does not raise the rate", whatever runs without an outcome hide."""
        return evalue(log_gap_evalue(*_least(self.kept, self.live)))

    def interval(self, level: float) -> Interval:
        """Return the differences that are not refuted, whatever runs without an outcome hide.

        It is above 0 just when the e-value is above 1 / level.
        """
        low, high = contrast(*_least(self.kept, self.live), level)
        if self.kept.undefined or self.live.undefined:
            before, after = _least(self.live, self.kept)
            high = contrast(after, before, level)[1]
        return low, high


def contrasted(inquiry: Inquiry, kept: Probe, live: Probe) -> Contrast:
    """Return the contrast of two arms as it stands."""
    return Contrast(inquiry.evidence.tally(kept), inquiry.evidence.tally(live))


def certify(inquiry: Inquiry, kept: Probe, live: Probe, among: int = 1) -> Asking[Contrast]:
    """Fork at both sides of a step in turn until the difference is proven, or enough were tried.

    Args:
        inquiry: the blame.
        kept: keeps the step.
        live: draws it again.
        among: how many steps will be named together, with it: e-BH asks less of each of several.
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

    One step by itself: at the simultaneous level of all positions. One of several: where e-BH over
    all units names so many with this as the least e-value.
    """
    if found.doubtful:
        return False
    if among == 1:
        return found.evalue >= 1 / inquiry.narrow
    evalues = [found.evalue] * among + [0.0] * (inquiry.size - among)
    return bool(e_bh(evalues, inquiry.settings.level))


def allowed(inquiry: Inquiry, earlier: Sequence[Probe]) -> Asking[bool]:
    """Return whether a step that is re-decided fails less often than one that is named may.

    A coin that this step tosses falls the same way wherever before it one starts, so those forks
    count as well. What cannot be told from the ceiling is not below it.

    Far below the ceiling a confidence sequence says so first, and near it the sequential
    probability ratio test of Wald (1945); each errs at half the level.

    Args:
        inquiry: the blame.
        earlier: the positions up to the one where this step is re-decided, which is the last.
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
    """Return whether an arm has no outcomes to count."""
    return any(arm.undefined > max(5, arm.trials) for arm in (found.kept, found.live))


def _least(kept: Tally, live: Tally) -> tuple[Count, Count]:
    """Return both counts as they are where what has no outcome passed if kept, failed if live."""
    return (
        (kept.failures, kept.tried),
        (live.failures + live.undefined, live.tried),
    )
