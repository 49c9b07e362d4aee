"""What is left of a failure once its cause is repaired: echoes of it, or a cause of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tracefork_core.blaming.engine.certify import certify, proven
from tracefork_core.blaming.engine.evidence import Asking, Inquiry, World, prefixes
from tracefork_core.blaming.engine.localise import localise
from tracefork_core.blaming.engine.peel import Peeled, peel
from tracefork_core.blaming.engine.probe import Probe, Trial

_TRIES = 3
_ROUNDS = 4
_DRAWS = 24
_APART = 5  # the test of Wald (1945) of 1/4 against 3/4, odds 243


@dataclass(frozen=True, slots=True)
class Repaired:
    """What came of repairing one unit.

    Attributes:
        unit: the unit that was repaired.
        trial: where its good response was seen; None where no response was good.
        alone: whether the run is good with all else exactly as recorded.
        mediators: units that only passed the failure on, in order.
        others: sets that would have doomed the run without it.
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
        for trial in inquiry.book.trials
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
    for _ in range(_DRAWS):
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
