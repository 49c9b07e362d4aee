"""Find which step made a run fail: the phases of a blame, one after another.

The engine runs nothing itself. It yields probes, receives their trials, and decides what to try
next. The same trials and the same random generator give the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from random import Random

from tracefork_core.blaming.engine.causes import (
    Peeled,
    peel,
    preempting,
    repair,
    repaired_live,
    scan,
)
from tracefork_core.blaming.engine.certify import allowed, certify, proven
from tracefork_core.blaming.engine.controls import controls, reproduces, unsuspected
from tracefork_core.blaming.engine.evidence import (
    RECORDED,
    Asking,
    Inquiry,
    Standing,
    bordered,
    members,
    prefixes,
)
from tracefork_core.blaming.engine.localise import Finding, believed, localise
from tracefork_core.blaming.engine.probe import Exhausted, Probe, Settings, Trial
from tracefork_core.blaming.engine.result import Kind, Result, Verdict
from tracefork_core.blaming.engine.shares import LARGEST, designed
from tracefork_core.blaming.engine.verdict import Case, report

_DOUBTFUL = "too many forks at the likeliest unit have no outcome"
_ROUNDS = 4
_FIRST = 2
_BELOW = 0.3
_UNEXPLAINED = "and all else as recorded, the run still fails: who else fails it is not known"


def blame(
    costs: Sequence[float],
    random: Random,
    settings: Settings | None = None,
    groups: Sequence[Collection[int]] = (),
    watch: Callable[[Standing], None] = lambda standing: None,
) -> Generator[list[Probe], list[Trial], Result]:
    """Yield batches of probes, receive their trials in order, and return the result.

    Throw `Exhausted` in to end the blame early: what is not known by then is undecided.

    Args:
        costs: cost of each unit in the recording, >= 0, in any one unit.
        random: the only source of randomness.
        settings: thresholds and sample sizes; None for the defaults.
        groups: a partition of the units: the search compares groups first, then units within one.
        watch: called with the state of the blame after every batch of the search.

    Raises:
        ValueError: there are no units, a cost is below 0, or the groups are not a partition.
    """
    if not costs or min(costs) < 0:
        raise ValueError(f"costs must hold one number >= 0 for each unit (got {list(costs)})")
    inquiry = Inquiry(costs, settings or Settings(), random, watch)
    inquiry.chain = bordered(inquiry.size, groups) if groups else prefixes(inquiry.size)
    case = Case(_unnamed("undecided"))
    try:
        yield from _phases(inquiry, case)
    except Exhausted:
        if inquiry.phase != "sharing":  # The verdict is complete before that phase.
            reason = f"the budget ran out in phase {inquiry.phase!r}"
            case.verdict = _unnamed("undecided", reason)
    return report(inquiry, case, groups)


def _phases(inquiry: Inquiry, case: Case) -> Asking[None]:
    failing = yield from reproduces(inquiry)
    if failing is None:
        case.verdict = _unnamed("undecided", "too many replays have no outcome")
        return
    if not failing:
        case.verdict = _unnamed("not reproducible", "as recorded, the run mostly does not fail")
        return
    case.verdict = yield from _judged(inquiry, case)
    yield from _controls(inquiry, case)
    named = case.verdict.units
    if inquiry.settings.sharing and 2 <= len(named) <= LARGEST:
        inquiry.enter("sharing")
        for probe in designed(named, inquiry.size, case.verdict.mediators):
            yield from inquiry.reach(probe, inquiry.settings.sharing)


def _judged(inquiry: Inquiry, case: Case) -> Asking[Verdict]:
    """Localise and certify until both agree, then look for joint and second causes."""
    inquiry.enter("baseline")
    if (yield from _inert(inquiry)):
        return _unnamed("inert", "drawn again, every unit answers as it did: vary what is live")
    for _ in range(_ROUNDS):
        inquiry.enter("localise")
        finding = yield from localise(inquiry, inquiry.chain)
        inquiry.settled = inquiry.settled or len(inquiry.evidence.trials)
        if finding.step is None:
            if verdict := (yield from _no_decisive_unit(inquiry, finding)):
                return verdict
            continue
        inquiry.enter("certify")
        kept, live = RECORDED.sides(finding.chain, finding.step, "certify")
        proof = yield from certify(inquiry, kept, live)
        if proof.doubtful:
            return _unnamed("undecided", _DOUBTFUL)
        step, case.unit = _standing(inquiry, finding), finding.unit
        if step == finding.step and proven(inquiry, proof):
            earlier = [
                RECORDED.probe(kept, "certify") for kept in finding.chain[: finding.step + 1]
            ]
            verdict = _unnamed("diffuse", "where it is re-decided, the run fails as often as not")
            if (yield from allowed(inquiry, earlier)):
                verdict = yield from _structure(inquiry, case, finding)
            if inquiry.evidence.tally(kept).doubtful or inquiry.evidence.tally(live).doubtful:
                return _unnamed("undecided", _DOUBTFUL)
            return verdict
    return _unnamed("undecided", "no unit is proven to make a difference")


def _standing(inquiry: Inquiry, found: Finding) -> int | None:
    """Return the likeliest step; None unless a decisive step is more likely than not."""
    belief = believed(inquiry, found.chain)
    step, _ = belief.likeliest()
    return step if belief.chance(None) < 0.5 else None


def _no_decisive_unit(inquiry: Inquiry, found: Finding) -> Asking[Verdict | None]:
    """Return why no unit is decisive; None if the search should go on, since one still may be."""
    if not found.sure:
        return _unnamed("diffuse", "no single unit stands out")
    bound = inquiry.settings.hopeless
    if found.belief.level(0) < bound - _BELOW:
        return _unnamed("diffuse", "no unit raises the risk by enough")
    start = RECORDED.probe((), "baseline")
    if not (yield from inquiry.mostly_fails(start, bound - _BELOW, (1 + bound) / 2)):
        return None
    flip = preempting((yield from scan(inquiry)))
    if flip is None:
        return _unnamed("fails anyway", "run again from the start, it fails as well")
    unit, trial = flip
    if not (yield from inquiry.mostly_fails(repaired_live(unit, trial))):
        # Its repair does save the run, so the search was misled: fork again at both positions.
        for kept in (range(0), range(unit)):
            yield from inquiry.repeat(RECORDED.probe(kept), inquiry.settings.least)
        return None
    return Verdict(
        kind="preempted",
        units=(unit,),
        sets=((unit,),),
        responsibility=0.5,
        reason="the run would have failed in another way without it",
    )


def _inert(inquiry: Inquiry) -> Asking[bool]:
    """Run from the start; return whether every response is always the recorded one."""
    start = RECORDED.probe((), "baseline")
    for forks in (_FIRST, inquiry.settings.least):
        yield from inquiry.reach(start, forks)
        redrawn = [inquiry.evidence.changed(unit) for unit in range(inquiry.size)]
        if not all(drawn and not changed for changed, drawn in redrawn):
            return False
    return True


def _structure(inquiry: Inquiry, case: Case, found: Finding) -> Asking[Verdict]:
    unit = found.unit
    assert unit is not None
    inquiry.enter("peel")
    own = yield from peel(inquiry, unit)
    if own.unproven:
        return _unnamed("undecided", f"unit {unit} was not enough alone; with whom is not known")
    case.repaired = yield from repair(inquiry, max(own.units))
    sets = (own, *case.repaired.others)
    if any(peeled.unproven for peeled in sets):
        return _unnamed("undecided", "a second cause is not fully known")
    if case.repaired.unexplained:
        return _unnamed("undecided", f"with unit {case.repaired.unit} repaired, {_UNEXPLAINED}")
    return _named(sets, case.repaired.mediators)


def _named(sets: Sequence[Peeled], mediators: tuple[int, ...]) -> Verdict:
    kind: Kind = "over-determined" if len(sets) > 1 else "joint"
    if len(sets) == 1 and len(sets[0].units) == 1:
        kind = "single"
    units = tuple(sorted({unit for peeled in sets for unit in peeled.units}))
    return Verdict(
        kind=kind,
        units=units,
        mediators=tuple(unit for unit in mediators if unit not in units),
        sets=tuple(peeled.units for peeled in sets),
        responsibility=1 / len(sets),
        certain=True,
    )


def _controls(inquiry: Inquiry, case: Case) -> Asking[None]:
    belief, chain = believed(inquiry, inquiry.chain), inquiry.chain
    credible = belief.credible(inquiry.settings.credible)
    suspects = {unit for step in credible if step is not None for unit in members(chain, step)}
    suspects |= {*case.verdict.units, *case.verdict.mediators}
    case.outside = unsuspected(inquiry, frozenset(suspects))
    yield from controls(inquiry, case.unit, case.outside)


def _unnamed(kind: Kind, reason: str = "") -> Verdict:
    return Verdict(kind=kind, reason=reason)
