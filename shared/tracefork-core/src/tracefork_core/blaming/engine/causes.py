"""What is left of a failure once its cause is repaired: echoes of it, or a cause of its own."""

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
"""A set that dooms a run does so far more often than not; one that lacks a member does not."""


@dataclass(frozen=True, slots=True)
class Peeled:
    """A set of units that doom a run together.

    Attributes:
        units: its members, in order.
        unproven: whether a member is believed to be one, and not proven.
    """

    units: tuple[int, ...]
    unproven: bool


def peel(inquiry: Inquiry, first: int, world: World = RECORDED) -> Asking[Peeled]:
    """Hold the decisive unit and search what is left of the curve, until nothing jumps.

    What is held then dooms the run by itself: v(H) is high. Members that the others make
    do without are dropped, so that each is but-for (NESS: Wright 1985; Halpern 2015).
    """
    chain = prefixes(inquiry.size)
    members, unproven, doubts = [first], False, 0
    while len(members) < _LARGEST:
        held = world.holding(members)
        found = yield from localise(inquiry, chain, held)
        if found.unit is None:
            if (yield from inquiry.mostly_fails(held.probe((), "peel"), *_ENOUGH)):
                break
        else:
            kept, live = held.sides(chain, found.unit, "peel")
            proof = yield from certify(inquiry, kept, live, among=len(members) + 1)
            if proven(inquiry, proof, among=len(members) + 1):
                members.append(found.unit)
                continue
        doubts += 1  # what was found does not hold: search again, with what was seen since
        if unproven := doubts > _DOUBTS:
            break
    units = yield from _needed(inquiry, sorted(members), world)
    return Peeled(units, unproven)


def _needed(inquiry: Inquiry, units: list[int], world: World) -> Asking[tuple[int, ...]]:
    """Return the units without which the others would not have been enough."""
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
_APART = 5  # the test of Wald (1945) of 1/4 against 3/4, odds 243


@dataclass(frozen=True, slots=True)
class Repaired:
    """What came of repairing one unit.

    Attributes:
        unit: the unit that was repaired.
        trial: where its good response was seen; None where no response was good.
        alone: whether the run is good with all else exactly as recorded.
        mediators: units that only passed the failure on, in order.
        others: sets that would have made the run fail without it.
        unexplained: whether the run still failed, and nobody was found.
    """

    unit: int
    trial: int | None = None
    alone: bool = False
    mediators: tuple[int, ...] = ()
    others: tuple[Peeled, ...] = ()
    unexplained: bool = False


def repair(inquiry: Inquiry, unit: int) -> Asking[Repaired]:
    """Give a unit a response that saved a fork, hold all the others, and see who still fails it."""
    inquiry.enter("repair")
    trial = yield from _good_response(inquiry, unit)
    if trial is None:
        return Repaired(unit)
    world = World(given=((unit, trial),))
    mediators: list[int] = []
    others: list[Peeled] = []
    unexplained = alone = False
    for turn in range(_ROUNDS):  # as many echoes are told one by one
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
    """Return the run as recorded up to a unit, that unit repaired, and the rest live."""
    return World(given=((unit, trial),)).probe(range(unit), "repair")


def _good_response(inquiry: Inquiry, unit: int) -> Asking[int | None]:
    """Return the trial of a response of this unit after which the run is good more often than not.

    The oracle may have passed a bad run, and a later step may have saved one: it is tried again,
    with all before it as recorded and all after it live.
    """
    for trial in list(_saved(inquiry, unit))[:_TRIES]:
        if not (yield from inquiry.mostly_fails(repaired_live(unit, trial))):
            return trial
    return None


def _saved(inquiry: Inquiry, unit: int) -> Iterator[int]:
    """Yield trials that passed with another response of this unit, its own context first."""
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
    """Return who fails the repaired run; and the set it is in, where that is a cause of its own.

    The repaired run is searched as the recorded one was: its curve, from the repair on.
    """
    whole = prefixes(inquiry.size)
    chain = whole[repaired + 1 :]
    for _ in range(_TRIES):
        found = yield from localise(inquiry, chain, world)
        if found.unit is None:
            yield from inquiry.repeat(world.probe(chain[0], "release"), inquiry.settings.least)
            continue
        if (yield from _carries(inquiry, found.unit, world)):
            return found.unit, None
        proof = yield from certify(inquiry, *world.sides(whole, found.unit, "release"))
        if proven(inquiry, proof):
            return found.unit, (yield from peel(inquiry, found.unit, world))
    return None, None


def _carries(inquiry: Inquiry, unit: int, world: World) -> Asking[bool]:
    """Return whether what a unit answers to the bad run dooms the repaired one, drawn afresh.

    Its response is drawn again in its recorded context, and transplanted: the natural indirect
    effect of Pearl (2001). One that is bad only by its own chance mostly comes out good.
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
    """Return the probe of a world where a unit answers as drawn; the same answer is a held one."""
    if drawn.same.get(unit, False):
        return world.probe(range(unit + 1), "transplant")
    planted = replace(world, given=tuple(sorted((*world.given, (unit, drawn.number)))))
    return planted.probe(range(unit), "transplant")


_HOLDS = 8
_DIFFERENT = 3


@dataclass(slots=True)
class Alone:
    """A unit drawn again while all the others are held.

    Attributes:
        drawn: times it answered otherwise than recorded.
        flips: trials whose response made the run good, and did so again when it was graded anew.
    """

    drawn: int = 0
    flips: list[int] = field(default_factory=list)


def scan(inquiry: Inquiry) -> Asking[dict[int, Alone]]:
    """Draw each unit again with all others as recorded: one live call each, and no tail.

    A flip is an actual cause, even where a repair would not save a live run (Halpern's 2015
    modification of Halpern & Pearl: what is held is held at its recorded value).
    """
    inquiry.enter("hold")
    answers = inquiry.settings.answers
    world = World(free=answers)
    found = {unit: Alone() for unit in range(inquiry.size)}
    for _ in range(_HOLDS):
        units = [unit for unit in found if _open(inquiry, unit, found[unit])]
        probes = [world.probe(inquiry.all - {unit}, "hold") for unit in units]
        trials = []
        for start in range(0, len(probes), inquiry.settings.batch):
            trials += yield from inquiry.ask(probes[start : start + inquiry.settings.batch])
        for unit, trial in zip(units, trials, strict=True):
            if trial.same.get(unit, False) or trial.undefined is not None:
                continue
            found[unit].drawn += 1
            if trial.failed is False:
                again = Probe(trial.probe.held, ((unit, trial.number),), None, "hold")
                if not (yield from inquiry.mostly_fails(again)):
                    found[unit].flips.append(trial.number)
    return found


def _open(inquiry: Inquiry, unit: int, alone: Alone) -> bool:
    """Return whether a unit may still flip the run: not one that never answers otherwise."""
    changed, drawn = inquiry.evidence.changed(unit)
    fixed = drawn >= _HOLDS and not changed
    known = bool(alone.flips) or alone.drawn >= _DIFFERENT or fixed
    return not known and unit not in inquiry.settings.answers | inquiry.settings.auxiliary


def preempting(found: dict[int, Alone]) -> tuple[int, int] | None:
    """Return the unit that flips the run most readily, and a trial it did in; None for none."""
    flipping = [unit for unit in sorted(found) if found[unit].flips]
    if not flipping:
        return None
    unit = max(flipping, key=lambda unit: len(found[unit].flips) / found[unit].drawn)
    return unit, found[unit].flips[0]
