"""Find the exchange that somebody means: by its number, the step that asked it, a checkpoint."""

from __future__ import annotations

from tracefork_core.checkpoints.lineage import lineage_of
from tracefork_core.errors import UsageError
from tracefork_core.tape import StepRecord, Tape

_TELLING = 4
"""Characters of the end of a checkpoint's id that are taken for it, at least."""

Place = int | str
"""The number of an exchange, a step by its id or name, or a checkpoint by (the end of) its id.

Of a step that is the first exchange under it, of a checkpoint the first that was asked from there.

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
    found = found or _from_checkpoint(tape, place)
    if not found:
        names = ", ".join(dict.fromkeys(step.name for _, step in firsts)) or "none"
        raise UsageError(
            f"tracefork: {tape.path} has no step {place!r} with something asked under it or after "
            f"it. Steps that have: {names}. Or give the number of an exchange: tracefork show "
            f"{tape.path}."
        )
    return found[0]


def _from_checkpoint(tape: Tape, id_or_end: str) -> list[int]:
    """Return the first exchange that ran from a checkpoint, or from where the run went on to."""
    lineage = lineage_of(tape)
    for one in lineage.checkpoints:
        if len(id_or_end) >= _TELLING and one.id.endswith(id_or_end):
            line = {(one.thread, place) for place in lineage.line(one.thread, one.id)}
            return [exchange.n for exchange in tape.exchanges if exchange.checkpoint in line][:1]
    return []


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
    firsts: dict[str, int] = {}
    for exchange in tape.exchanges:
        for step in exchange.steps:
            firsts.setdefault(step.id, exchange.n)
    return firsts
