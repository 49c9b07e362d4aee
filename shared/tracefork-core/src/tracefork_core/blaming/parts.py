"""A run in parts, coarse to fine: tasks, the agents in one, and what each did to the outcome."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from tracefork_core.blaming.engine.certify import Contrast
from tracefork_core.blaming.engine.evidence import Tally
from tracefork_core.blaming.engine.intervals import simultaneous
from tracefork_core.blaming.engine.result import Interval, Point, Result
from tracefork_core.errors import UsageError
from tracefork_core.tape import Exchange, Tape


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The units of one step of a kind, or of none.

    `kind` is "" for what is under no step of the kind, and `step` are the names from the root down.
    `parts` are those of the next kind, where a person asked for several.
    """

    kind: str
    step: tuple[str, ...]
    units: tuple[int, ...]
    parts: tuple[Part, ...] = ()


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a part: it adds up what is known of its units.

    Attributes:
        part: which.
        is_named: whether the verdict names one of its units.
        chance: that the decisive unit is in it.
        gain: by how much it raised the risk for good, as believed.
        effect: how much more often a run fails that keeps it too than one that keeps only what
            comes before it; None where the search has not been at both its borders.
        interval: of the effect, simultaneous over positions, valid at any time.
        kept: how often a run fails that keeps it.
        redecided: how often one fails that decides it again.
        parts: those in it, where it is named or the likeliest.
    """

    part: Part
    is_named: bool
    chance: float
    gain: float
    effect: float | None
    interval: Interval | None
    kept: float | None
    redecided: float | None
    parts: tuple[Weighed, ...] = ()


def parts_by(tape: Tape, kinds: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts of a run by the innermost step of a kind that each exchange is under.

    What is under none of that kind is a part by itself.

    Raises:
        UsageError: no step of such a kind asked for anything.
    """
    asked = {step.kind for exchange in tape.exchanges for step in exchange.steps}
    for kind in kinds:
        if kind not in asked:
            known = ", ".join(sorted(asked)) or "none"
            raise UsageError(f"tracefork: no step of kind {kind!r} on {tape.path}; kinds: {known}.")
    return _parts(tape.exchanges, kinds)


def parts_of(tape: Tape, groups: Sequence[Collection[int]]) -> tuple[Part, ...]:
    """Return given groups of units as parts, each by the steps that its units have in common."""
    known = tape.exchanges
    return tuple(
        Part(kind="", step=_in_common([known[n] for n in units if n < len(known)]), units=units)
        for units in (tuple(sorted(group)) for group in groups if group)
    )


def weighed(result: Result, parts: Sequence[Part], level: float) -> tuple[Weighed, ...]:
    """Return the parts with what a blame has found, those that are named or likely first.

    Args:
        result: of a blame that was searched by these parts.
        parts: a partition of its units.
        level: that of all its intervals together.
    """
    searched = sorted(parts, key=lambda part: part.units)
    order = [unit for part in searched for unit in part.units]
    curve = {point.position: point for point in result.curve}
    named = set(result.verdict.units)
    if not named and result.decisive is not None:
        named = {result.decisive.unit}
    narrow = simultaneous(level, len(order))

    def weigh(part: Part) -> Weighed:
        units = [result.units[unit] for unit in part.units]
        found = _contrast(curve, order, part)
        return Weighed(
            part=part,
            is_named=not named.isdisjoint(part.units) and bool(result.verdict.units),
            chance=sum(unit.chance for unit in units),
            gain=sum(unit.gain for unit in units),
            effect=found.effect if found else None,
            interval=found.interval(narrow) if found else None,
            kept=found.kept.rate if found else None,
            redecided=found.live.rate if found else None,
            parts=() if named.isdisjoint(part.units) else ranked(part.parts),
        )

    def ranked(some: Sequence[Part]) -> tuple[Weighed, ...]:
        all_of_them = [weigh(part) for part in some]
        return tuple(sorted(all_of_them, key=lambda one: (not one.is_named, -one.chance)))

    return ranked(parts)


def _parts(exchanges: Sequence[Exchange], kinds: Sequence[str]) -> tuple[Part, ...]:
    if not kinds:
        return ()
    kind, *finer = kinds
    found: dict[object, tuple[str, tuple[str, ...], list[Exchange]]] = {}
    for exchange in exchanges:
        steps = exchange.steps
        place = max((i for i, step in enumerate(steps) if step.kind == kind), default=None)
        if place is None:
            found[exchange.n] = "", exchange.step_path, [exchange]
        else:
            path = exchange.step_path[: place + 1]
            found.setdefault(steps[place].id, (kind, path, []))[2].append(exchange)
    return tuple(
        Part(
            kind=called,
            step=path,
            units=tuple(exchange.n for exchange in inside),
            parts=_parts(inside, finer),
        )
        for called, path, inside in found.values()
    )


def _contrast(curve: dict[int, Point], order: Sequence[int], part: Part) -> Contrast | None:
    """Return the runs at both borders of a part, where both were tried."""
    first = order.index(part.units[0])
    if tuple(order[first : first + len(part.units)]) != part.units:
        return None  # What it did is mixed with what others did.
    before, after = (curve.get(position) for position in (first, first + len(part.units)))
    if before is None or after is None or not (before.forks and after.forks):
        return None
    return Contrast(_tally(after), _tally(before))


def _tally(point: Point) -> Tally:
    return Tally(point.failures, point.forks - point.failures, point.undefined)


def _in_common(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    paths = [exchange.step_path for exchange in exchanges]
    first = paths[0] if paths else ()
    shared = 0
    while shared < len(first) and all(path[: shared + 1] == first[: shared + 1] for path in paths):
        shared += 1
    return first[:shared]
