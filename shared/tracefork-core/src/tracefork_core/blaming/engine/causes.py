"""Repair the decisive unit and find what still makes the run fail: an echo or a second cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tracefork_core.blaming.engine.certify import certify, proven
from tracefork_core.blaming.engine.evidence import RECORDED, Asking, Inquiry, World, prefixes
from tracefork_core.blaming.engine.localise import localise
from tracefork_core.blaming.engine.probe import Probe, Trial

_LARGEST = 5
_DOUBTS = 2
_ENOUGH = 0.4, 0.9
"""Failure rates of a set that lacks a member and of a complete one, to tell them apart."""


@dataclass(frozen=True, slots=True)
class Peeled:
    """A set of units that together make a run fail.

    Attributes:
        units: its members, in ascending order.
        unproven: whether the set may be incomplete, since a further member could not be proven.
    """

    units: tuple[int, ...]
    unproven: bool


def peel(inquiry: Inquiry, first: int, world: World = RECORDED) -> Asking[Peeled]:
    """Hold the decisive unit and search the remaining curve for more members, until it has no jump.

    The held units then make the run fail by themselves: v(H) is high. Members without which the
    others still suffice are dropped, so that each one left is a but-for cause (NESS: Wright 1985;
    Halpern 2015).
    """
    chain = prefixes(inquiry.size)
    members, unproven, doubts = [first], False, 0
    while len(members) < _LARGEST:
        held = world.holding(members)
        finding = yield from localise(inquiry, chain, held)
        if finding.unit is None:
            if (yield from inquiry.mostly_fails(held.probe((), "peel"), *_ENOUGH)):
                break
        else:
            kept, live = held.sides(chain, finding.unit, "peel")
            proof = yield from certify(inquiry, kept, live, among=len(members) + 1)
            if proven(inquiry, proof, among=len(members) + 1):
                members.append(finding.unit)
                continue
        doubts += 1  # The unit was not proven: search again, with the forks made since.
        if unproven := doubts > _DOUBTS:
            break
    units = yield from _needed(inquiry, sorted(members), world)
    return Peeled(units, unproven)


def _needed(inquiry: Inquiry, units: list[int], world: World) -> Asking[tuple[int, ...]]:
    """Drop each unit without which the others still make the run fail."""
    if len(units) == 1:
        return tuple(units)
    chain, needed = prefixes(inquiry.size), list(units)
    for unit in units:
        others = [other for other in needed if other != unit]
        probe = world.holding(others).probe(chain[unit], "peel")
        if others and (yield from inquiry.mostly_fails(probe, *_ENOUGH)):
            needed = others
    return tuple(needed)


_TRIES = 3
_ROUNDS = 4
_TRANSPLANTS = 24
_APART = 5  # Wald's (1945) test of 1/4 against 3/4, at odds of 243.


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of repairing one unit.

    Attributes:
        unit: the unit that was repaired.
        trial: the trial that its good response is from; None if no response was good.
        alone: whether the run is good with everything else exactly as recorded.
        mediators: units that only passed the failure on, in ascending order.
        others: sets that would have made the run fail without it.
        unexplained: whether the repaired run still fails and no unit explains it.
    """

    unit: int
    trial: int | None = None
    alone: bool = False
    mediators: tuple[int, ...] = ()
    others: tuple[Peeled, ...] = ()
    unexplained: bool = False


def repair(inquiry: Inquiry, unit: int) -> Asking[Repaired]:
    """Give a unit a response that saved a fork, hold the rest, and find what still fails it."""
    inquiry.enter("repair")
    trial = yield from _good_response(inquiry, unit)
    if trial is None:
        return Repaired(unit)
    world = World(given=((unit, trial),))
    mediators: list[int] = []
    others: list[Peeled] = []
    unexplained = alone = False
    for turn in range(_ROUNDS):  # Each round finds at most one echo.
        held = world.probe(inquiry.all, "repair")
        if not (yield from inquiry.mostly_fails(held)):
            alone = not turn
            break
        carrier, second = yield from _carrier(inquiry, unit, world)
        if carrier is None:
            unexplained = True
            break
        if second is None:
            mediators.append(carrier)
            world = replace(world, free=world.free | {carrier})
        else:
            others.append(second)
            break
    return Repaired(unit, trial, alone, tuple(sorted(mediators)), tuple(others), unexplained)


def repaired_live(unit: int, trial: int) -> Probe:
    """Return the probe that keeps everything before a unit, repairs it, and runs the rest live."""
    return World(given=((unit, trial),)).probe(range(unit), "repair")


def _good_response(inquiry: Inquiry, unit: int) -> Asking[int | None]:
    """Return a trial with a response of this unit after which the run is mostly good, or None.

    The oracle may have passed a bad run, or a later step may have saved it. So each response is
    tried again, with everything before it as recorded and everything after it live.
    """
    for trial in list(_saved(inquiry, unit))[:_TRIES]:
        if not (yield from inquiry.mostly_fails(repaired_live(unit, trial))):
            return trial
    return None


def _saved(inquiry: Inquiry, unit: int) -> Iterator[int]:
    """Yield trials that passed with another response of this unit, recorded context first."""
    passed = [
        trial
        for trial in inquiry.evidence.trials
        if trial.failed is False
        and not trial.probe.given
        and unit not in trial.probe.held
        and not trial.same.get(unit, False)
    ]
    context = frozenset(range(unit))
    passed.sort(key=lambda trial: (trial.probe.held != context, -len(trial.probe.held & context)))
    return (trial.number for trial in passed)


def _carrier(
    inquiry: Inquiry, repaired: int, world: World
) -> Asking[tuple[int | None, Peeled | None]]:
    """Return the unit that fails the repaired run, and its set if it is a second cause.

    The repaired run is searched as the recorded one was: by its curve, from the repair on.
    """
    whole = prefixes(inquiry.size)
    chain = whole[repaired + 1 :]
    for _ in range(_TRIES):
        finding = yield from localise(inquiry, chain, world)
        if finding.unit is None:
            yield from inquiry.repeat(world.probe(chain[0], "release"), inquiry.settings.least)
            continue
        if (yield from _carries(inquiry, finding.unit, world)):
            return finding.unit, None
        proof = yield from certify(inquiry, *world.sides(whole, finding.unit, "release"))
        if proven(inquiry, proof):
            return finding.unit, (yield from peel(inquiry, finding.unit, world))
    return None, None


def _carries(inquiry: Inquiry, unit: int, world: World) -> Asking[bool]:
    """Return whether a unit carries the failure into the repaired run.

    Its response is drawn again in its recorded context and transplanted into the repaired run: the
    natural indirect effect of Pearl (2001). A unit that failed by its own bad luck mostly draws a
    good response.
    """
    draw = Probe(frozenset(range(unit)), (), unit, "transplant")
    bad = good = 0
    for _ in range(_TRANSPLANTS):
        (drawn,) = yield from inquiry.ask([draw])
        if drawn.undefined is not None:
            continue
        (trial,) = yield from inquiry.ask([_transplanted(world, unit, drawn)])
        bad += trial.failed is True
        good += trial.failed is False
        if abs(bad - good) >= _APART:
            break
    return bad > good


def _transplanted(world: World, unit: int, drawn: Trial) -> Probe:
    """Return the probe where a unit gives the drawn response; held if that is the recorded one."""
    if drawn.same.get(unit, False):
        return world.probe(range(unit + 1), "transplant")
    planted = replace(world, given=tuple(sorted((*world.given, (unit, drawn.number)))))
    return planted.probe(range(unit), "transplant")


_HOLDS = 8
_DIFFERENT = 3


@dataclass(slots=True)
class Alone:
    """The results of drawing a unit again while all others are held.

    Attributes:
        drawn: number of draws whose response differed from the recorded one.
        flips: trials whose response made the run good, also when it was graded again.
    """

    drawn: int = 0
    flips: list[int] = field(default_factory=list)


def scan(inquiry: Inquiry) -> Asking[dict[int, Alone]]:
    """Draw each unit again with all others as recorded, at one live call per draw.

    A unit that flips the outcome is an actual cause, even if a repair would not save a live run
    (Halpern's 2015 modification of Halpern & Pearl: units are held at their recorded values).
    """
    inquiry.enter("hold")
    answers = inquiry.settings.answers
    world = World(free=answers)
    results = {unit: Alone() for unit in range(inquiry.size)}
    for _ in range(_HOLDS):
        units = [unit for unit in results if _open(inquiry, unit, results[unit])]
        probes = [world.probe(inquiry.all - {unit}, "hold") for unit in units]
        trials = []
        for start in range(0, len(probes), inquiry.settings.batch):
            trials += yield from inquiry.ask(probes[start : start + inquiry.settings.batch])
        for unit, trial in zip(units, trials, strict=True):
            if trial.same.get(unit, False) or trial.undefined is not None:
                continue
            results[unit].drawn += 1
            if trial.failed is False:
                again = Probe(trial.probe.held, ((unit, trial.number),), None, "hold")
                if not (yield from inquiry.mostly_fails(again)):
                    results[unit].flips.append(trial.number)
    return results


def _open(inquiry: Inquiry, unit: int, alone: Alone) -> bool:
    """Return whether to draw a unit again: it has not flipped the run, and its answers vary."""
    changed, drawn = inquiry.evidence.changed(unit)
    fixed = drawn >= _HOLDS and not changed
    known = bool(alone.flips) or alone.drawn >= _DIFFERENT or fixed
    return not known and unit not in inquiry.settings.answers | inquiry.settings.auxiliary


def preempting(found: dict[int, Alone]) -> tuple[int, int] | None:
    """Return the unit that flips the run most often and one such trial; None if none did."""
    flipping = [unit for unit in sorted(found) if found[unit].flips]
    if not flipping:
        return None
    unit = max(flipping, key=lambda unit: len(found[unit].flips) / found[unit].drawn)
    return unit, found[unit].flips[0]
