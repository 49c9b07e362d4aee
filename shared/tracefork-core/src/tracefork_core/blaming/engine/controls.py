"""Check that the recorded run fails when it is replayed, and run the negative controls."""

from __future__ import annotations

from tracefork_core.blaming.engine.certify import contrasted
from tracefork_core.blaming.engine.evidence import RECORDED, Asking, Inquiry, counted, prefixes
from tracefork_core.blaming.engine.intervals import (
    Count,
    confidence_sequence,
    contrast,
    drift_evalue,
)
from tracefork_core.blaming.engine.probe import Probe
from tracefork_core.blaming.engine.result import Control

_MOST = 40
_BLIND = 15


def reproduces(inquiry: Inquiry) -> Asking[bool | None]:
    """Grade the run with every unit held, without a live call; return whether it mostly fails.

    If all grades agree, that is the answer. Else the run is graded until the rate is known to be
    above or below one half, at most `_MOST` times; an outcome that is a coin never is. None if the
    run has no outcome.
    """
    inquiry.enter("replay")
    probe = RECORDED.probe(inquiry.all, "replay")
    most = max(_MOST, inquiry.settings.grades)
    while True:
        tally = yield from inquiry.reach(probe, inquiry.settings.grades)
        if tally.doubtful and tally.tried >= _BLIND:
            return None
        if tally.doubtful:
            yield from inquiry.repeat(probe, inquiry.settings.grades)
            continue
        if not tally.passes or not tally.failures:
            return not tally.passes
        low, high = confidence_sequence(*tally.count, inquiry.settings.level)
        if low > 0.5 or high < 0.5 or tally.tried >= most:
            return low > 0.5
        yield from inquiry.repeat(probe, inquiry.settings.grades)


_NULL = 4
_LATE = 2
_DRIFT = 20.0


def controls(inquiry: Inquiry, suspect: int | None, outside: int | None) -> Asking[None]:
    """Run the forks that the negative controls need.

    Args:
        inquiry: the blame.
        suspect: the unit whose recorded response is given instead of held; None for one in the
            middle.
        outside: a unit that is not suspected; None if all are.
    """
    inquiry.enter("controls")
    yield from inquiry.reach(placebo_probe(inquiry, suspect), inquiry.settings.grades)
    whole = prefixes(inquiry.size)
    if outside is not None:
        for kept in (whole[outside], whole[outside + 1]):
            yield from inquiry.reach(RECORDED.probe(kept, "null"), _NULL)
    start = RECORDED.probe((), "baseline")
    late = sum(1 for _ in inquiry.evidence.of(start, inquiry.settled or 0))
    yield from inquiry.repeat(start, _LATE - late)


def placebo_probe(inquiry: Inquiry, suspect: int | None) -> Probe:
    """Return the probe of the run as recorded, with one recorded response given instead of held."""
    unit = inquiry.size // 2 if suspect is None else suspect
    replayed = next(
        trial.number for trial in inquiry.evidence.trials if trial.probe.held == inquiry.all
    )
    return Probe(inquiry.all - {unit}, ((unit, replayed),), None, "placebo")


def unsuspected(inquiry: Inquiry, suspects: frozenset[int]) -> int | None:
    """Return the cheapest unit to try that is not suspected; None if all are suspected."""
    others = [unit for unit in range(inquiry.size) if unit not in suspects]
    whole = prefixes(inquiry.size)
    return min(
        others,
        key=lambda unit: (inquiry.price(RECORDED.probe(whole[unit])), -unit),
        default=None,
    )


def checked(inquiry: Inquiry, suspect: int | None, outside: int | None) -> tuple[Control, ...]:
    """Return the results of the controls that could be run."""
    made = [_replay(inquiry)]
    if made[0].forks:
        made.append(_placebo(inquiry, suspect))
    if outside is not None:
        made.append(_null(inquiry, outside))
    made.append(_drift(inquiry))
    return tuple(control for control in made if control.forks)


def _replay(inquiry: Inquiry) -> Control:
    tally = inquiry.evidence.tally(RECORDED.probe(inquiry.all))
    return Control(
        name="replay",
        passed=tally.failures > tally.passes,
        forks=tally.tried,
        says=f"as recorded, the run failed {tally.failures} of {tally.trials} times",
    )


def _placebo(inquiry: Inquiry, suspect: int | None) -> Control:
    replayed = inquiry.evidence.tally(RECORDED.probe(inquiry.all))
    tally = inquiry.evidence.tally(placebo_probe(inquiry, suspect))
    low, high = contrast(tally.count, replayed.count, inquiry.settings.level)
    return Control(
        name="placebo",
        passed=low <= 0 <= high,
        forks=tally.tried,
        says=f"given its recorded response again, it failed {tally.failures} of {tally.trials}",
        interval=(low, high),
    )


def _null(inquiry: Inquiry, unit: int) -> Control:
    difference = contrasted(inquiry, *RECORDED.sides(prefixes(inquiry.size), unit))
    low, high = difference.interval(inquiry.narrow)
    return Control(
        name="null step",
        passed=low <= 0 <= high,
        forks=0 if not difference.kept.trials else difference.live.trials,
        says=f"unit {unit}, not a suspect: effect {difference.effect:+.2f}",
        unit=unit,
        interval=(low, high),
    )


def _drift(inquiry: Inquiry) -> Control:
    """Compare the forks at each position from before and after the decisive step was found."""
    border = len(inquiry.evidence.trials) if inquiry.settled is None else inquiry.settled
    pairs: list[tuple[Count, Count]] = []
    late_forks = 0
    for kept in dict.fromkeys((*inquiry.chain, *prefixes(inquiry.size))):
        trials = list(inquiry.evidence.of(RECORDED.probe(kept)))
        late = counted(inquiry.evidence.of(RECORDED.probe(kept), border))
        early = counted(trials[: len(trials) - late.tried])
        if early.trials and late.trials:
            pairs.append((early.count, late.count))
            late_forks += late.trials
    evalue = drift_evalue(pairs)
    return Control(
        name="drift",
        passed=evalue < _DRIFT,
        forks=late_forks,
        says=f"early against late forks: e-value {evalue:.3g} (alarm at {_DRIFT:g})",
        evalue=evalue,
    )
