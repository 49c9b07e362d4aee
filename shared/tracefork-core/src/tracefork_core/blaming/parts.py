"""Split a run into parts, such as tasks and their agents, and report the effect of each part."""

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
    """The units of one step of a kind, or one unit that is under no such step.

    Attributes:
        kind: kind of the step; "" for a unit that is under no step of that kind.
        step: names of the steps from the root down.
        units: the units, in ascending order.
        parts: the parts of the next kind inside this one, if several kinds were requested.
    """

    kind: str
    step: tuple[str, ...]
    units: tuple[int, ...]
    parts: tuple[Part, ...] = ()


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a part on the outcome.

    Attributes:
        part: the part.
        is_named: whether the verdict names one of its units.
        chance: probability that the decisive unit is in it: the sum over its units.
        gain: how much it raised the risk for good, as estimated: the sum over its units.
        effect: difference in failure rate, from -1 to 1, between runs that keep this part and runs
            that keep only what comes before it; None if the search did not fork at both its ends.
            If other parts ran inside of it, that of its likeliest piece between them.
        interval: of the effect, simultaneous over positions, valid at any time.
        kept: failure rate of runs that keep it.
        redecided: failure rate of runs that decide it again.
        parts: the parts inside it, if it is named or contains the likeliest unit.
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
    """Group the exchanges of a run by the innermost step of a kind above each of them.

    An exchange under no step of that kind is a part by itself.

    Raises:
        UsageError: no step of such a kind made a call.
    """
    asked = {step.kind for exchange in tape.exchanges for step in exchange.steps}
    for kind in kinds:
        if kind not in asked:
            known = ", ".join(sorted(asked)) or "none"
            raise UsageError(f"tracefork: no step of kind {kind!r} on {tape.path}; kinds: {known}.")
    return _parts(tape.exchanges, kinds)


def parts_of(tape: Tape, groups: Sequence[Collection[int]]) -> tuple[Part, ...]:
    """Return groups of units as parts, each named after the steps that its units share."""
    known = tape.exchanges
    return tuple(
        Part(kind="", step=_in_common([known[n] for n in units if n < len(known)]), units=units)
        for units in (tuple(sorted(group)) for group in groups if group)
    )


def pieces(parts: Sequence[Part]) -> tuple[tuple[int, ...], ...]:
    """Return the units of each part, divided where a part inside of its step has units in between.

    An agent that runs another one in a tool continues when that has ended, and repeats what it
    said. A fork that keeps both sides of the outer agent would keep the failure, whichever of the
    two erred. So the search keeps what came before the inner one without what came after it.
    """
    return tuple(piece for part in parts for piece in _divided(part, parts))


def _divided(part: Part, parts: Sequence[Part]) -> list[tuple[int, ...]]:
    inside = [
        other.units[0]
        for other in parts
        if len(other.step) > len(part.step) and other.step[: len(part.step)] == part.step
    ]
    before: dict[int, list[int]] = {}
    for unit in part.units:
        before.setdefault(sum(first < unit for first in inside), []).append(unit)
    return [tuple(units) for units in before.values()]


def weighed(result: Result, parts: Sequence[Part], level: float) -> tuple[Weighed, ...]:
    """Return the parts with their effects, named and likely ones first.

    Args:
        result: result of a blame that searched by these parts.
        parts: a partition of its units.
        level: error rate of all intervals together.
    """
    order = [unit for piece in sorted(pieces(parts)) for unit in piece]
    curve = {point.position: point for point in result.curve}
    named = set(result.verdict.units)
    if not named and result.decisive is not None:
        named = {result.decisive.unit}
    narrow = simultaneous(level, len(order))

    def chance(units: Sequence[int]) -> float:
        return sum(result.units[unit].chance for unit in units)

    def weigh(part: Part, beside: Sequence[Part]) -> Weighed:
        units = [result.units[unit] for unit in part.units]
        contrast = _contrast(curve, order, max(_divided(part, beside), key=chance))
        return Weighed(
            part=part,
            is_named=not named.isdisjoint(part.units) and bool(result.verdict.units),
            chance=chance(part.units),
            gain=sum(unit.gain for unit in units),
            effect=contrast.effect if contrast else None,
            interval=contrast.interval(narrow) if contrast else None,
            kept=contrast.kept.rate if contrast else None,
            redecided=contrast.live.rate if contrast else None,
            parts=() if named.isdisjoint(part.units) else ranked(part.parts),
        )

    def ranked(some: Sequence[Part]) -> tuple[Weighed, ...]:
        all_of_them = [weigh(part, some) for part in some]
        return tuple(sorted(all_of_them, key=lambda part: (not part.is_named, -part.chance)))

    return ranked(parts)


def _parts(exchanges: Sequence[Exchange], kinds: Sequence[str]) -> tuple[Part, ...]:
    if not kinds:
        return ()
    kind, *finer = kinds
    groups: dict[object, tuple[str, tuple[str, ...], list[Exchange]]] = {}
    for exchange in exchanges:
        steps = exchange.steps
        index = max((i for i, step in enumerate(steps) if step.kind == kind), default=None)
        if index is None:
            groups[exchange.n] = "", exchange.step_path, [exchange]
        else:
            path = exchange.step_path[: index + 1]
            groups.setdefault(steps[index].id, (kind, path, []))[2].append(exchange)
    return tuple(
        Part(
            kind=called,
            step=path,
            units=tuple(exchange.n for exchange in inside),
            parts=_parts(inside, finer),
        )
        for called, path, inside in groups.values()
    )


def _contrast(
    curve: dict[int, Point], order: Sequence[int], units: tuple[int, ...]
) -> Contrast | None:
    """Compare the runs at both ends of some units; None unless both ends were tried."""
    first = order.index(units[0])
    if tuple(order[first : first + len(units)]) != units:
        return None  # Other parts have units in between, so their effects are mixed.
    before, after = (curve.get(position) for position in (first, first + len(units)))
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
