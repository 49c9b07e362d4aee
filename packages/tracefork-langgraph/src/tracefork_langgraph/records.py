"""Convert LangGraph's checkpoints and writes to what core stores, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from tracefork_core.adapters import (
    Checkpoints,
    SavedCheckpoint,
    SavedValue,
    SavedWrite,
    without_secrets,
)

_MOST = 2**63
VALUES = "channel_values"
_DELTAS = "counters_since_delta_snapshot"

Bodies = dict[str, bytes]


def nanoseconds(moment: object) -> int:
    """Return an ISO 8601 time as nanoseconds since 1970; 0 if it is not a valid time."""
    try:
        made = int(datetime.fromisoformat(str(moment)).timestamp() * 1_000_000) * 1000
    except (ValueError, OverflowError, OSError):
        return 0
    return made if abs(made) < _MOST else 0


def place_of(configurable: Mapping[str, Any]) -> tuple[str, str]:
    """Return the thread id and the checkpoint namespace of a config."""
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns") or ""


def config_of(thread: object, ns: str, at: str) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": at}}


def saved(
    serde: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
) -> tuple[SavedCheckpoint, Bodies]:
    """Return a checkpoint as core stores it, and the bytes of its values."""
    thread, ns = place_of(config["configurable"])
    bodies: Bodies = {}
    head = {name: part for name, part in checkpoint.items() if name != VALUES}
    record = SavedCheckpoint(
        thread,
        ns,
        checkpoint["id"],
        _dumped(serde, head, bodies),
        {name: _dumped(serde, value, bodies) for name, value in checkpoint[VALUES].items()},
        without_secrets(get_checkpoint_metadata(config, metadata)),
        config["configurable"].get("checkpoint_id"),
        nanoseconds(checkpoint["ts"]),
    )
    return record, bodies


def written(
    serde: SerializerProtocol,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task: str,
    path: str,
) -> tuple[list[SavedWrite], Bodies]:
    """Return the writes of a task as core stores them, and their bytes."""
    thread, ns = place_of(config["configurable"])
    at = str(config["configurable"]["checkpoint_id"])
    bodies: Bodies = {}
    records = [
        SavedWrite(
            *(thread, ns, at, task, WRITES_IDX_MAP.get(channel, i), channel),
            _dumped(serde, value, bodies),
            path,
        )
        for i, (channel, value) in enumerate(writes)
    ]
    return records, bodies


def loaded(serde: SerializerProtocol, store: Checkpoints, thread: str, value: SavedValue) -> Any:
    """Deserialize a stored value."""
    return serde.loads_typed((value.tag, store.body(thread, value)))


def tuple_of(
    serde: SerializerProtocol, store: Checkpoints, found: SavedCheckpoint
) -> CheckpointTuple:
    """Return a stored checkpoint as LangGraph's `CheckpointTuple`."""
    thread = found.thread
    checkpoint = loaded(serde, store, thread, found.head)
    checkpoint[VALUES] = {
        name: loaded(serde, store, thread, value) for name, value in found.values.items()
    }
    return CheckpointTuple(
        config_of(thread, found.ns, found.id),
        checkpoint,
        found.metadata,
        config_of(thread, found.ns, found.parent) if found.parent else None,
        [
            (write.task, write.channel, loaded(serde, store, thread, write.value))
            for write in store.writes(thread, found.ns, found.id)
        ],
    )


def rests(found: SavedCheckpoint) -> Collection[str] | None:
    """Return the channels that are stored as writes since their last snapshot.

    None if the metadata does not say: LangGraph 1.2.0 leaves it out for a state edited by hand.
    """
    deltas = found.metadata.get(_DELTAS)
    if deltas is None and found.metadata.get("source") == "update":
        return None
    return [str(channel) for channel in deltas] if isinstance(deltas, Mapping) else ()


def kept(tag: str, body: bytes, bodies: Bodies) -> SavedValue:
    """Return a serialized value as core stores it, and add its bytes to `bodies`."""
    sha = hashlib.sha256(body).hexdigest()
    bodies[sha] = body
    return SavedValue(tag, sha)


def _dumped(serde: SerializerProtocol, value: object, bodies: Bodies) -> SavedValue:
    tag, body = serde.dumps_typed(value)
    return kept(tag, bytes(body), bodies)
