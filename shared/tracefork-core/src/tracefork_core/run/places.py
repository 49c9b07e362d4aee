"""Find the exchange that somebody means: by its number, or by the step that asked it."""

from __future__ import annotations

from tracefork_core.errors import UsageError
from tracefork_core.tape import StepRecord, Tape

_DEEPEST = 64

Place = int | str
"""The number of an exchange, or a step by its id or name: the first exchange under it.

Of a step that asks for nothing, a checkpoint say, the first exchange after it began. Where several
steps have one name, `name:2` is the second of them.
"""


def number_of(tape: Tape, place: Place) -> int:
    """Return the number of the exchange at a place.

    Raises:
        UsageError: there is no such step, or it asked for nothing.
    """
    if isinstance(place, int):
        return place
    if place.isascii() and place.isdecimal():
        return int(place)
    named, _, nth = place.rpartition(":")
    if not (named and nth.isascii() and nth.isdecimal()):
        named, nth = place, "1"
    firsts = _firsts(tape)
    found = [n for n, step in firsts if step.id == place or step.name == place]
    found = found[:1] or [n for n, step in firsts if step.name == named][int(nth) - 1 :][:1]
    if not found:
        names = ", ".join(dict.fromkeys(step.name for _, step in firsts)) or "none"
        raise UsageError(
            f"tracefork: {tape.path} has no step {place!r} with something asked under it or after "
            f"it. Steps that have: {names}. Or give the number of an exchange: tracefork show "
            f"{tape.path}."
        )
    return found[0]


def _firsts(tape: Tape) -> list[tuple[int, StepRecord]]:
    """Return the steps in the order they began, each with its first exchange, or the next one."""
    under, asked = _under(tape), [(one.aside.started, one.n) for one in tape.exchanges]
    firsts = []
    for step in tape.steps:
        later = [n for started, n in asked if started >= step.started]
        n = under.get(step.id, min(later, default=None))
        if n is not None:
            firsts.append((n, step))
    return firsts


def _under(tape: Tape) -> dict[str, int]:
    """Return the first exchange that was asked under each step that asked."""
    steps = {step.id: step for step in tape.steps}
    firsts: dict[str, int] = {}
    for exchange in tape.exchanges:
        step = exchange.step
        for _ in range(_DEEPEST):
            if step is None or (record := steps.get(step)) is None:
                break
            firsts.setdefault(record.id, exchange.n)
            step = record.parent
    return firsts
