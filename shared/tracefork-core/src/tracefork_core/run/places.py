"""Find the exchange that somebody means: by its number, or by the step that asked it."""

from __future__ import annotations

from tracefork_core.errors import UsageError
from tracefork_core.tape import StepRecord, Tape

_DEEPEST = 64

Place = int | str
"""The number of an exchange, or a step by its id or name: the first exchange under it.

Where several steps have one name, `name:2` is the second of them that asked for something.
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
    found = [n for n, step in _firsts(tape) if step.id == place or step.name == place]
    found = found[:1] or [n for n, step in _firsts(tape) if step.name == named][int(nth) - 1 :][:1]
    if not found:
        names = ", ".join(dict.fromkeys(step.name for _, step in _firsts(tape))) or "none"
        raise UsageError(
            f"tracefork: {tape.path} has no step {place!r} that asked for something. Steps that "
            f"did: {names}. Or give the number of an exchange: tracefork show {tape.path}."
        )
    return found[0]


def _firsts(tape: Tape) -> list[tuple[int, StepRecord]]:
    """Return the steps under which something was asked, each with its first exchange."""
    steps = {step.id: step for step in tape.steps}
    firsts: dict[str, tuple[int, StepRecord]] = {}
    for exchange in tape.exchanges:
        step = exchange.step
        for _ in range(_DEEPEST):
            if step is None or (record := steps.get(step)) is None:
                break
            firsts.setdefault(record.id, (exchange.n, record))
            step = record.parent
    return list(firsts.values())
