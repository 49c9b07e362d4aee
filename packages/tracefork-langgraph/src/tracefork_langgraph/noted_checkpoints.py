"""Convert checkpoints of another checkpointer to what a tape notes of a read, and back.

The note is JSON. It has the index of each value among the serialized values that go with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec
from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from tracefork_core.adapters import Noted, SavedCheckpoint, SavedWrite, without_secrets
from tracefork_langgraph.records import VALUES, Bodies, kept, nanoseconds, place_of

Typed = tuple[str, bytes]


class _Note(msgspec.Struct, omit_defaults=True):
    """A checkpoint as a tape notes it; numbers are indices of values.

    `writes` are lists of a task, its index, a channel and the index of the value.
    """

    thread: str
    ns: str
    id: str
    head: int
    values: dict[str, int]
    metadata: dict[str, Any]
    parent: str | None = None
    made: int = 0
    writes: list[tuple[str, int, str, int]] = []


def note_of(serde: SerializerProtocol, found: CheckpointTuple) -> tuple[object, list[Typed]]:
    """Return a checkpoint as a note, with its values.

    Raises:
        TypeError: a value cannot be serialized.
    """
    typed: list[Typed] = []

    def add(value: object) -> int:
        typed.append(serde.dumps_typed(value))
        return len(typed) - 1

    checkpoint = found.checkpoint
    thread, ns = place_of(found.config["configurable"])
    parent = (found.parent_config or {}).get("configurable", {}).get("checkpoint_id")
    writes: list[tuple[str, int, str, int]] = []
    for task, several in groupby(found.pending_writes or (), lambda write: write[0]):
        for i, (_, channel, value) in enumerate(several):
            writes.append((task, WRITES_IDX_MAP.get(channel, i), channel, add(value)))
    note = _Note(
        thread,
        ns,
        checkpoint["id"],
        add({name: part for name, part in checkpoint.items() if name != VALUES}),
        {name: add(value) for name, value in checkpoint[VALUES].items()},
        without_secrets(msgspec.to_builtins(found.metadata, enc_hook=str)),
        parent,
        nanoseconds(checkpoint["ts"]),
        writes,
    )
    return msgspec.to_builtins(note), typed


def from_note(noted: Noted) -> tuple[SavedCheckpoint, list[SavedWrite], Bodies]:
    """Return a noted checkpoint as core stores it, what was written after it, and the bytes.

    Raises:
        ValueError: the note is corrupt.
    """
    note = msgspec.convert(noted.answer, _Note)
    bodies: Bodies = {}
    try:
        values = [kept(tag, data, bodies) for tag, data in noted.values]
        record = SavedCheckpoint(
            *(note.thread, note.ns, note.id, values[note.head]),
            {name: values[i] for name, i in note.values.items()},
            *(note.metadata, note.parent, note.made),
        )
        return record, _writes(note, values), bodies
    except IndexError as error:
        raise ValueError("it names a value that is not there") from error


def _writes(note: _Note, values: Sequence[Any]) -> list[SavedWrite]:
    """Return the noted writes. Their paths keep them in order, before those of this run."""
    return [
        SavedWrite(note.thread, note.ns, note.id, task, idx, channel, values[i], f"{n:06}")
        for n, (task, idx, channel, i) in enumerate(note.writes)
    ]
