"""Import the threads of LangGraph's SqliteSaver without creating the objects in them.

SqliteSaver stores a whole checkpoint in one value, including its channels. The import splits that
value into its parts without decoding them, so each part keeps its bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from tracefork_core import UsageError
from tracefork_core.adapters import (
    Checkpoints,
    Imported,
    SavedCheckpoint,
    SavedWrite,
    without_secrets,
)
from tracefork_langgraph.records import VALUES, Bodies, kept, nanoseconds
from tracefork_langgraph.serde import TAGS

_CHECKPOINTS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, "
    "metadata FROM checkpoints ORDER BY thread_id, checkpoint_ns, checkpoint_id"
)
_WRITES = (
    "SELECT task_id, idx, channel, type, value, {path} FROM writes "
    "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx"
)
_parts = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode
_text = msgspec.msgpack.Decoder(str).decode
_metadata = msgspec.json.Decoder(dict[str, Any]).decode
_DAMAGED = (msgspec.MsgspecError, KeyError, TypeError, ValueError, RecursionError)


def import_sqlite(source: Path, target: Checkpoints) -> Imported:
    """Copy the threads of a SqliteSaver's file into `target`, and count them.

    Raises:
        UsageError: it is not such a file, it is corrupt, or it has values in JSON or pickle, as
            old versions wrote them.
    """
    if not source.is_file():
        raise UsageError(f"tracefork: {source} does not exist, or is not a file.")
    threads: set[str] = set()
    checkpoints = writes = 0
    try:
        name = f"file:{quote(str(source.absolute()))}?mode=ro"
        with closing(sqlite3.connect(name, uri=True)) as db:
            columns = {column for _, column, *_ in db.execute("PRAGMA table_info(writes)")}
            asked = _WRITES.format(path="task_path" if "task_path" in columns else "''")
            for row in db.execute(_CHECKPOINTS):
                checkpoint, bodies = _checkpoint(*row)
                target.put(checkpoint, bodies)
                written, bodies = _written(db.execute(asked, row[:3]), checkpoint)
                target.put_writes(written, bodies)
                threads.add(checkpoint.thread)
                checkpoints, writes = checkpoints + 1, writes + len(written)
    except sqlite3.Error as error:
        raise UsageError(
            f"tracefork: {source} is not a file of LangGraph's SqliteSaver: {error}."
        ) from error
    return Imported(len(threads), checkpoints, writes)


def _checkpoint(
    thread: str,
    ns: str,
    at: str,
    parent: str | None,
    tag: str,
    data: bytes,
    metadata: bytes | str | None,
) -> tuple[SavedCheckpoint, Bodies]:
    where = f"checkpoint {at!r} of thread {thread!r}"
    _check_parts(where, str, thread=thread, ns=ns, id=at, parent=parent or "")
    _check(tag, where)
    try:
        head = _parts(data)
        values = _parts(head.pop(VALUES))
        metadata_fields = _metadata(metadata) if metadata else {}
        made = nanoseconds(_text(head["ts"])) if "ts" in head else 0
    except _DAMAGED as error:
        raise UsageError(f"tracefork: {where} is corrupt: {error}.") from error
    bodies: Bodies = {}
    return SavedCheckpoint(
        thread,
        ns,
        at,
        kept(tag, msgspec.msgpack.encode(head), bodies),
        {channel: kept(tag, bytes(value), bodies) for channel, value in values.items()},
        without_secrets(metadata_fields),
        parent or None,
        made,
    ), bodies


def _written(
    rows: Iterator[tuple[Any, ...]], after: SavedCheckpoint
) -> tuple[list[SavedWrite], Bodies]:
    bodies: Bodies = {}
    written = []
    for task, idx, channel, tag, data, path in rows:
        where = f"write {idx!r} of task {task!r} after checkpoint {after.id!r} of {after.thread!r}"
        _check_parts(where, str, task=task, channel=channel, path=path or "")
        _check_parts(where, int, idx=idx)
        _check_parts(where, bytes, value=data or b"")
        _check(tag, where)
        key = after.thread, after.ns, after.id, task, idx, channel
        written.append(SavedWrite(*key, kept(tag, data or b"", bodies), path or ""))
    return written, bodies


def _check_parts(where: str, kind: type, **parts: object) -> None:
    """Check the types of columns: SQLite stores any type in any column.

    Raises:
        UsageError: a value has another type.
    """
    for name, part in parts.items():
        if not isinstance(part, kind):
            raise UsageError(
                f"tracefork: {where} is corrupt: its {name} is {type(part).__name__}, "
                f"not {kind.__name__}."
            )


def _check(tag: str, where: str) -> None:
    if tag not in TAGS:
        raise UsageError(
            f"tracefork: {where} is in the format {tag!r}. Reading that would create the objects "
            "that it names, so tracefork does not. Save it again with SqliteSaver first."
        )
