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
"""What goes into a row of SQLite; as nanoseconds since the epoch, a date there is."""

_NESTED = range(8)
"""The codes of extensions that hold MessagePack."""
_DEEPEST = 200
_DAMAGED = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError)


class Value(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A serialised value: what kind of bytes they are (the framework's tag), and their sha256."""

    tag: str
    sha: Sha


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A saved state. `thread` and `ns` name the line of states it is in, `parent` the one before.

    `head` is what the framework keeps besides: versions, time stamp. `metadata` is plain JSON.
    Ids sort by the time they were made, within a thread and `ns`. `made` is when that was, in
    nanoseconds since the epoch.
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
    """What a task wrote after checkpoint `id`, not yet part of a state.

    `path` and `task`, then `idx`, are its place among all writes. A negative `idx` replaces what
    was written there before; otherwise the first one stays.
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
"""The kinds of events that tell of checkpoints, in the order in which it happened."""


class Saved(msgspec.Struct, frozen=True, omit_defaults=True):
    """A checkpoint was put; or one from before the recording (`known`) was read.

    `store` names the file that the framework keeps it in: a run may have several.
    """

    checkpoint: Checkpoint
    known: bool = False
    store: str = ""


class Written(msgspec.Struct, frozen=True, omit_defaults=True):
    """Writes were put, all by one task; or those from before the recording were read."""

    writes: list[Write]
    known: bool = False
    store: str = ""


class Called(msgspec.Struct, frozen=True, omit_defaults=True):
    """The framework asked for a thread: to run it, to resume it, to look at it, to list it.

    `id` is the checkpoint it named, `found` the one it ran from. `asked` is how many exchanges had
    been asked for. Of a run that went on from a recorded checkpoint, `made` is when that was made,
    and `skipped` are the exchanges that it went past by that, without asking for them.
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
    """Return the values that an event names, each with what it is the value of."""
    match event:
        case Saved(checkpoint=checkpoint):
            return [("", checkpoint.head), *checkpoint.values.items()]
        case Written(writes=writes):
            return [(write.channel, write.value) for write in writes]
    return []


def values_in(document: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the values in the document of an event, to be changed in place, as `named` does.

    Raises:
        TapeError: it is not the document of such an event.
    """
    try:
        for write in document.get("writes", ()):
            yield write["channel"], write["value"]
        if (one := document.get("checkpoint")) is not None:
            yield "", one["head"]
            yield from one["values"].items()
    except (AttributeError, KeyError, TypeError) as error:
        raise TapeError(f"tracefork: an event of a checkpoint is none: {error!r}.") from error


def rewritten(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a value with all its texts and bytes changed.

    Raises:
        TapeError: it is no MessagePack.
    """
    try:
        return msgspec.msgpack.encode(_changed(msgspec.msgpack.decode(data), change, 0))
    except _DAMAGED as error:
        raise TapeError(f"tracefork: a value is no MessagePack: {error}.") from error


def plain(data: bytes) -> object:
    """Return a value as JSON has it: bytes by their number, types as `{"type": …, "value": …}`.

    Raises:
        TapeError: it is no MessagePack.
    """
    try:
        return _plain(msgspec.msgpack.decode(data), 0)
    except _DAMAGED as error:
        raise TapeError(f"tracefork: a value is no MessagePack: {error}.") from error


def _changed(value: object, change: Callable[[bytes], bytes], depth: int) -> object:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deep")
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
        raise ValueError("it is nested too deep")
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
