"""The engine of blame, as a bench holds it to truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING

from tracefork_core.bench.driving import Asking, Interval, Said

if TYPE_CHECKING:
    from tracefork_core.blaming.engine.result import Result


def blame_engine(costs: Sequence[float], random: Random, reach: Callable[[str], None]) -> Asking:
    """Ask as blame does with its defaults, and say what it says."""
    from tracefork_core.blaming.engine.engine import blame

    result = yield from blame(costs, random, watch=lambda standing: reach(standing.phase))
    return said(result)


def said(result: Result) -> Said:
    """Return what of a result is held to truth."""
    verdict, decisive = result.verdict, result.decisive
    return Said(
        verdict.kind,
        verdict.units,
        verdict.mediators,
        None if decisive is None else decisive.unit,
        tuple(_intervals(result)),
    )


def _intervals(result: Result) -> Iterator[Interval]:
    for point in result.curve:
        seen = point.failures, point.forks - point.failures, point.undefined
        yield Interval("curve", point.position, *point.interval, seen=seen)
    if result.decisive is not None:
        unit = result.decisive.unit
        yield Interval("effect", unit + 1, *result.decisive.interval, since=unit)
    base = result.baseline
    seen = base.failures, base.forks - base.failures, base.undefined
    yield Interval("baseline", 0, *base.interval, seen=seen)
    for control in result.controls:
        if control.interval is None:
            continue
        if control.unit is not None:
            yield Interval(control.name, control.unit + 1, *control.interval, since=control.unit)
        elif control.name == "placebo":
            yield Interval(control.name, 0, *control.interval, since=0)
