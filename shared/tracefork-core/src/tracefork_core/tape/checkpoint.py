"""Checkpoints: the states that a framework saved while it ran, and what its tasks wrote since.

A state is a set of *values*, each serialised by its framework and stored under the sha256 of those
bytes. Only the framework's own adapter ever turns them into objects.

Values are mostly MessagePack. They are shown and masked here without making an object: a framework
puts its own types into extensions, whose payload is MessagePack again (the name of the type, and
what it is made of).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec

from tracefork_core.errors import TapeError

Sha = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A 64-bit integer, which SQLite can store; as nanoseconds since the epoch, a date until 2262."""

_NESTED = range(8)
"""The codes of extensions that hold MessagePack."""
_DEEPEST = 200
_CORRUPT = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError)


class Value(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A serialised value: the framework's tag for its format, and the sha256 of its bytes."""

    tag: str
    sha: Sha


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A saved state. `thread` and `ns` name its line of states, `parent` the state before it.

    `head` is what the framework stores besides the values: versions, a time stamp. `metadata` is
    plain JSON. Within a thread and `ns`, ids sort by the time at which they were made. `made` is
    that time, in nanoseconds since the epoch.
    """

    thread: str
    ns: str
    id: str
    head: Value
    values: dict[str, Value]
    metadata: dict[str, object] = {}
    parent: str | None = None
    made: Number = 0


class Write(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that a task wrote after checkpoint `id`, not yet part of a state.

    Writes sort by `path`, `task` and `idx`. With a negative `idx` a later write replaces an earlier
    one; else the first one stays.
    """

    thread: str
    ns: str
    id: str
    task: str
    idx: Number
    channel: str
    value: Value
    path: str = ""


SAVED = "checkpoint"
WRITTEN = "checkpoint_writes"
CALLED = "checkpoint_call"
"""The kinds of events about checkpoints, in the order in which they happen."""


class Saved(msgspec.Struct, frozen=True, omit_defaults=True):
    """A checkpoint was put; or one from before the recording (`known`) was read.

    `store` names the framework's file, of which a run may have several.
    """

    checkpoint: Checkpoint
    known: bool = False
    store: str = ""


class Written(msgspec.Struct, frozen=True, omit_defaults=True):
    """One task put writes; or those from before the recording (`known`) were read."""

    writes: list[Write]
    known: bool = False
    store: str = ""


class Called(msgspec.Struct, frozen=True, omit_defaults=True):
    """The framework is about to run, resume, look at or list a thread.

    `id` is the checkpoint that it named, `found` the one it ran from. `asked` counts the exchanges
    before. If the run continued from a recorded checkpoint, `made` is when that was made, and
    `skipped` are the exchanges that the run skipped by it.
    """

    call: str
    thread: str
    id: str | None = None
    found: str | None = None
    asked: Number = 0
    made: Number = 0
    skipped: list[Number] = []
    store: str = ""


CheckpointEvent = Saved | Written | Called
EVENTS: dict[str, type[CheckpointEvent]] = {SAVED: Saved, WRITTEN: Written, CALLED: Called}


def named(event: CheckpointEvent) -> list[tuple[str, Value]]:
    """Return the values in an event, each with the name of its channel."""
    match event:
        case Saved(checkpoint=checkpoint):
            return [("", checkpoint.head), *checkpoint.values.items()]
        case Written(writes=writes):
            return [(write.channel, write.value) for write in writes]
    return []


def values_in(document: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the values in the document of an event like `named`, to be changed in place.

    Raises:
        TapeError: the document is corrupt.
    """
    try:
        for write in document.get("writes", ()):
            yield write["channel"], write["value"]
        if (checkpoint := document.get("checkpoint")) is not None:
            yield "", checkpoint["head"]
            yield from checkpoint["values"].items()
    except (AttributeError, KeyError, TypeError) as error:
        raise TapeError(
            f"tracefork: the tape is corrupt: a checkpoint event cannot be read: {error!r}."
        ) from error


def rewritten(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a MessagePack value with all its texts and bytes changed.

    Raises:
        TapeError: the value is not MessagePack.
    """
    try:
        return msgspec.msgpack.encode(_changed(msgspec.msgpack.decode(data), change, 0))
    except _CORRUPT as error:
        raise TapeError(
            f"tracefork: a checkpoint is corrupt: a value is not MessagePack: {error}."
        ) from error


def plain(data: bytes) -> object:
    """Return a MessagePack value as JSON: types as `{"type": …, "value": …}`, bytes as a count.

    Raises:
        TapeError: the value is not MessagePack.
    """
    try:
        return _plain(msgspec.msgpack.decode(data), 0)
    except _CORRUPT as error:
        raise TapeError(
            f"tracefork: a checkpoint is corrupt: a value is not MessagePack: {error}."
        ) from error


def _changed(value: object, change: Callable[[bytes], bytes], depth: int) -> object:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    match value:
        case str():
            return change(value.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
        case bytes():
            return change(value)
        case list() | tuple():
            return [_changed(item, change, depth + 1) for item in value]
        case dict():
            return {
                _changed(key, change, depth + 1) if isinstance(key, str) else key: _changed(
                    item, change, depth + 1
                )
                for key, item in value.items()
            }
        case msgspec.msgpack.Ext(code=code, data=data) if code in _NESTED:
            inner = _changed(msgspec.msgpack.decode(data), change, depth + 1)
            return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(inner))
    return value


def _plain(value: object, depth: int) -> object:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    match value:
        case bytes():
            return f"{len(value)} bytes"
        case list() | tuple():
            return [_plain(item, depth + 1) for item in value]
        case dict():
            return {str(key): _plain(item, depth + 1) for key, item in value.items()}
        case msgspec.msgpack.Ext(code=code, data=data) if code in _NESTED:
            match msgspec.msgpack.decode(data):
                case [str(module), str(name), content, *_]:
                    return {"type": f"{module}.{name}", "value": _plain(content, depth + 1)}
                case other:
                    return _plain(other, depth + 1)
        case msgspec.msgpack.Ext(code=code, data=data):
            return f"extension {code}, {len(bytes(data))} bytes"
        case float() | int() | str() | None:
            return value
    return str(value)
