"""Which other steps had to go wrong too: the parts of a conjunction, one after another."""

from __future__ import annotations

from dataclasses import dataclass

from tracefork_core.blaming.engine.certify import certify, proven
from tracefork_core.blaming.engine.evidence import RECORDED, Asking, Inquiry, World, prefixes
from tracefork_core.blaming.engine.localise import localise

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
