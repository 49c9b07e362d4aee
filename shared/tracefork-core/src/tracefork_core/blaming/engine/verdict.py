"""Build the result of a blame from its trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

from tracefork_core.blaming.engine.causes import Repaired
from tracefork_core.blaming.engine.certify import contrasted
from tracefork_core.blaming.engine.controls import checked
from tracefork_core.blaming.engine.curve import Belief
from tracefork_core.blaming.engine.evidence import (
    RECORDED,
    Chain,
    Inquiry,
    Tally,
    World,
    counted,
    first_unit,
    members,
    prefixes,
)
from tracefork_core.blaming.engine.intervals import corrected_effect, wilson, worst_case
from tracefork_core.blaming.engine.localise import believed
from tracefork_core.blaming.engine.probe import Trial
from tracefork_core.blaming.engine.result import (
    Decisive,
    Group,
    Interaction,
    Ledger,
    Point,
    Rate,
    Repair,
    Result,
    Share,
    Undefined,
    Unit,
    Verdict,
)
from tracefork_core.blaming.engine.shares import LARGEST, coalitions, interaction, shapley, worths

_SILENT = ("diffuse", "fails anyway", "not reproducible", "inert", "passed", "preempted")


@dataclass(slots=True)
class Case:
    """The findings of the phases so far.

    Attributes:
        verdict: the answer so far.
        unit: the decisive unit, once a proof was tried.
        repaired: the result of repairing it.
        outside: a unit that is not suspected, for the controls.
    """

    verdict: Verdict
    unit: int | None = None
    repaired: Repaired | None = None
    outside: int | None = None


def report(
    inquiry: Inquiry,
    case: Case,
    groups: Sequence[Collection[int]],
) -> Result:
    """Return the result of a blame, with all its evidence."""
    verdict, belief = case.verdict, believed(inquiry, inquiry.chain)
    decisive = None if verdict.kind in _SILENT else _decisive(inquiry, belief, case.unit)
    units = _units(inquiry, belief)
    shares, interactions = _shares(inquiry, verdict)
    return Result(
        verdict=verdict,
        decisive=decisive,
        credible=_credible(inquiry, belief),
        curve=_curve(inquiry, belief),
        baseline=_rate(inquiry, inquiry.evidence.tally(RECORDED.probe(())), inquiry.settings.level),
        controls=checked(inquiry, case.unit, case.outside),
        units=units,
        groups=_groups(units, groups),
        repair=_repair(inquiry, case.repaired),
        shares=shares,
        interactions=interactions,
        undefined=_undefined(inquiry.evidence.trials),
        ledger=ledger(inquiry.evidence.trials),
    )


def _decisive(inquiry: Inquiry, belief: Belief, unit: int | None) -> Decisive | None:
    chain, settings = inquiry.chain, inquiry.settings
    step = belief.likeliest()[0] if unit is None else _step_of(chain, unit)
    trials = inquiry.evidence.trials
    if step is None or all(trial.probe.held == inquiry.all for trial in trials):
        return None
    difference = contrasted(inquiry, *RECORDED.sides(chain, step))
    return Decisive(
        unit=first_unit(chain, step),
        probability=belief.chance(step),
        effect=difference.effect,
        interval=difference.interval(inquiry.narrow),
        evalue=difference.evalue,
        kept=difference.kept.rate,
        redecided=difference.live.rate,
        corrected=corrected_effect(difference.effect, settings.false_fail, settings.miss),
    )


def _credible(inquiry: Inquiry, belief: Belief) -> tuple[int | None, ...]:
    named: list[int | None] = []
    for step in belief.credible(inquiry.settings.credible):
        named.extend([None] if step is None else members(inquiry.chain, step))
    return tuple(named)


def _curve(inquiry: Inquiry, belief: Belief) -> tuple[Point, ...]:
    chain, points = inquiry.chain, []
    for index, kept in enumerate(chain):
        tally = inquiry.evidence.tally(RECORDED.probe(kept))
        points.append(
            Point(
                position=len(kept),
                unit=None if index == len(chain) - 1 else first_unit(chain, index),
                forks=tally.trials,
                failures=tally.failures,
                undefined=tally.undefined,
                rate=tally.rate,
                interval=_interval(tally, inquiry.narrow),
                believed=belief.level(index),
            )
        )
    return tuple(points)


def _units(inquiry: Inquiry, belief: Belief) -> tuple[Unit, ...]:
    chain, whole, evidence_by_unit = inquiry.chain, prefixes(inquiry.size), []
    gains = belief.mean_gains()
    for unit in range(inquiry.size):
        step = _step_of(chain, unit)
        tally = inquiry.evidence.tally(RECORDED.probe(chain[step]))
        changed_runs = counted(
            trial
            for kept in {whole[unit], inquiry.all - {unit}}
            for trial in inquiry.evidence.of(RECORDED.probe(kept))
            if not trial.same.get(unit, False)
        )
        changed, drawn = inquiry.evidence.changed(unit)
        # The units of a step that was not split share its values equally.
        share = 1 / len(members(chain, step))
        evidence_by_unit.append(
            Unit(
                unit=unit,
                chance=belief.chance(step) * share,
                gain=gains[step] * share,
                rescue=tally.passes / tally.trials if tally.trials else None,
                flips=changed_runs.passes,
                redrawn=changed_runs.trials,
                flip_interval=wilson(changed_runs.passes, changed_runs.trials),
                repeated=drawn - changed,
                drawn=drawn,
            )
        )
    return tuple(evidence_by_unit)


def _groups(units: Sequence[Unit], groups: Sequence[Collection[int]]) -> tuple[Group, ...]:
    return tuple(
        Group(
            units=tuple(sorted(group)),
            chance=sum(units[unit].chance for unit in sorted(group)),
            gain=sum(units[unit].gain for unit in sorted(group)),
        )
        for group in groups
    )


def _repair(inquiry: Inquiry, repaired: Repaired | None) -> Repair | None:
    if repaired is None or repaired.trial is None:
        return None
    world, level = World(given=((repaired.unit, repaired.trial),)), inquiry.settings.level
    held, live = (
        _rate(inquiry, inquiry.evidence.tally(world.probe(kept)), level)
        for kept in (inquiry.all, range(repaired.unit))
    )
    return Repair(
        unit=repaired.unit, trial=repaired.trial, alone=repaired.alone, held=held, live=live
    )


def _shares(
    inquiry: Inquiry, verdict: Verdict
) -> tuple[tuple[Share, ...], tuple[Interaction, ...]]:
    players = verdict.units
    if not 2 <= len(players) <= LARGEST:
        return (), ()
    values = worths(inquiry.evidence, players, inquiry.size, verdict.mediators)
    if len(values) < len(coalitions(players)):
        return (), ()
    shares = shapley(values, players)
    return (
        tuple(Share(unit=unit, share=shares[unit]) for unit in players),
        tuple(
            Interaction(units=pair, value=interaction(values, players, pair))
            for pair in combinations(players, 2)
        ),
    )


def _rate(inquiry: Inquiry, tally: Tally, level: float) -> Rate:
    return Rate(
        forks=tally.trials,
        failures=tally.failures,
        undefined=tally.undefined,
        rate=tally.rate,
        interval=_interval(tally, level),
    )


def _interval(tally: Tally, level: float) -> tuple[float, float]:
    return worst_case(tally.failures, tally.passes, tally.undefined, level)


def _step_of(chain: Chain, unit: int) -> int:
    return next(step for step in range(len(chain) - 1) if unit in chain[step + 1])


def _undefined(trials: Sequence[Trial]) -> Undefined:
    reasons = Counter(trial.undefined for trial in trials if trial.undefined is not None)
    return Undefined(
        forks=sum(reasons.values()), of=len(trials), reasons=dict(sorted(reasons.items()))
    )


def ledger(trials: Sequence[Trial]) -> Ledger:
    """Add up what some trials cost."""
    prices = [trial.usd for trial in trials]
    known = [price for price in prices if price is not None]
    return Ledger(
        forks=len(trials),
        live_calls=sum(trial.calls for trial in trials),
        tokens=sum(trial.tokens for trial in trials),
        usd=sum(known) if len(known) == len(prices) else None,
        seconds=sum(trial.seconds for trial in trials),
        purposes=dict(sorted(Counter(trial.probe.purpose for trial in trials).items())),
    )
