"""Find the exchange that somebody means: by its number, the step that asked it, a checkpoint."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tracefork_core.checkpoints.lineage import lineage_of
from tracefork_core.errors import UsageError
from tracefork_core.tape import StepRecord, Tape

_TELLING = 4
"""Characters of the end of a checkpoint's id that are taken for it, at least."""

_ANSWER = "answer"
_ASIDE = frozenset({"converter", "guardrail", "knowledge", "memory"})
"""Kinds of steps that look at what a step around them answered, change its form, or keep it."""
_TASK, _AGENT = "task", "agent"
"""A task that agents work on has its answer from them: what else it asks comes after that."""

Place = int | str
"""The number of an exchange, a step by its id or name, or a checkpoint by (the end of) its id.

Of a step that is the first exchange under it, of a checkpoint the first that was asked from there.

Of a step that asks for nothing, a checkpoint say, the first exchange after it began. Where several
steps have one name, `name:2` is the second of them, and `kind:name` is one of that kind:
`task:plan`, `task:plan:2`. With `:answer` behind it a step is where it got what it came to: the
last exchange under it, but for what checks that answer, converts or remembers it. Of a task that
agents work on that is the last of theirs: who is told of their answer asks after that.
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
    found = _of_step(tape, place) or _from_checkpoint(tape, place)
    if not found:
        names = ", ".join(dict.fromkeys(step.name for _, step in _firsts(tape))) or "none"
        raise UsageError(
            f"tracefork: {tape.path} has no step {place!r} with something asked under it or after "
            f"it. Steps that have: {names}. Or give the number of an exchange: tracefork show "
            f"{tape.path}."
        )
    return found[0]


def start_of(tape: Tape, place: Place) -> int:
    """Return the number of the exchange where a fork begins.

    Raises:
        UsageError: as `number_of`, or it lies outside of the run.
    """
    number, count = number_of(tape, place), len(tape.exchanges)
    if not 0 <= number <= count:
        held = f"exchanges 0 to {count - 1}" if count else "no exchanges"
        raise UsageError(
            f"tracefork: cannot fork at {number}: the run has {held}. To see them: tracefork show "
            f"{shlex.quote(str(tape.path))}"
        )
    return number


def _of_step(tape: Tape, place: str) -> list[int]:
    """Return the exchange of the step that is meant."""
    firsts = _firsts(tape)
    step = _meant([step for _, step in firsts], place)
    if step is not None:
        return [n for n, one in firsts if one is step]
    whole, _, last = place.rpartition(":")
    step = _meant([step for _, step in firsts], whole) if last == _ANSWER else None
    return [] if step is None else _answers(tape, step)[-1:]


def _meant(steps: Sequence[StepRecord], words: str) -> StepRecord | None:
    """Return the step of an id or a name, by its kind or not, the first or the nth of them."""
    exact = [step for step in steps if words in (step.id, step.name)]
    if exact:
        return exact[0]
    kind, _, name = words.partition(":")
    for among, called in ([step for step in steps if step.kind == kind], name), (steps, words):
        before, _, nth = called.rpartition(":")
        found = [step for step in among if step.name == called]
        if not found and before and nth.isascii() and nth.isdecimal() and int(nth):
            found = [step for step in among if step.name == before][int(nth) - 1 :]
        if found:
            return found[0]
    return None


def _answers(tape: Tape, step: StepRecord) -> list[int]:
    """Return the exchanges under a step that lead to what it came to."""
    found, of_agents = [], []
    for exchange in tape.exchanges:
        path = exchange.steps
        place = next((i for i, one in enumerate(path) if one.id == step.id), None)
        if place is None or exchange.is_auxiliary:
            continue
        inside = path[place + 1 :]
        if not any(one.kind in _ASIDE for one in inside):
            found.append(exchange.n)
            if step.kind == _TASK and inside and inside[0].kind == _AGENT:
                of_agents.append(exchange.n)
    return of_agents or found


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
