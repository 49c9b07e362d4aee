"""Match answers that were addressed to interrupts by id to the same interrupts in this run.

LangGraph does not store such an answer as it was given; it stores all answers that each task has so
far. In a run that starts in the middle, tasks have other ids, and so have their interrupts. The
place of a task stays the same: its path, and the paths of the tasks around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from langgraph.checkpoint.serde.types import INTERRUPT, RESUME

from tracefork_core.adapters import Checkpoints, RecordedRun, SavedValue, SavedWrite

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Made = Callable[[SavedValue], Any]
"""Deserializes a stored value."""


def answered_by_id(run: RecordedRun, made: Made) -> dict[str, object]:
    """Return the answers that a recorded run gave to tasks, by the places of the tasks."""
    before = [*run.before, *run.before_inside]
    written = [*run.written, *run.written_inside]
    paths = _paths([*before, *written])
    known = {(write.ns, write.task): _listed(made(write.value)) for write in _of(RESUME, before)}
    answered: dict[str, object] = {}
    for write in _of(RESUME, written):
        answers = _listed(made(write.value))
        already = len(known.get((write.ns, write.task), ()))
        if len(answers) > already:  # A run adds one answer to a task and repeats the earlier ones.
            answered[_place(write, paths)] = answers[already]
    return answered


def asked_by_id(store: Checkpoints, thread: str, at: str, made: Made) -> dict[str, str]:
    """Return the ids of the open interrupts at a checkpoint, by the places of their tasks."""
    written = store.writes(thread, "", at)
    waiting = {item.task for item in _of(INTERRUPT, written)}
    inside: dict[str, list[SavedWrite]] = {}
    for item in store.search(thread):  # The latest first.
        if item.ns and item.ns not in inside and waiting.intersection(_ID.findall(item.ns)):
            inside[item.ns] = store.writes(thread, item.ns, item.id)
    for ns in sorted(inside, key=len):
        written.extend(inside[ns])
    paths = _paths(written)
    asked = (
        (question.id, _place(item, paths))
        for item in _of(INTERRUPT, written)
        for question in made(item.value)
    )
    # The tasks around an asking task have its interrupt too. The innermost one is last, and wins.
    return {place: name for name, place in dict(asked).items()}


def _of(channel: str, written: Iterable[SavedWrite]) -> Iterator[SavedWrite]:
    return (write for write in written if write.channel == channel)


def _paths(written: Iterable[SavedWrite]) -> dict[str, str]:
    return {write.task: _ID.sub("", write.path) for write in written}


def _place(write: SavedWrite, paths: dict[str, str]) -> str:
    around = _ID.sub(lambda task: paths.get(task[0], ""), write.ns)
    return f"{around}|{paths[write.task]}"


def _listed(answers: Any) -> list[Any]:
    return answers if isinstance(answers, list) else [answers]
