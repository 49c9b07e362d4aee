"""The rows of a file of threads: read, written and selected."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import msgspec

from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape.checkpoint import Checkpoint, Value

ROWS = (
    "SELECT threads.id, name, ns, checkpoints.id, parent, made, head, channels, metadata "
    "FROM threads JOIN checkpoints ON checkpoints.thread = threads.id"
)
"""The rows that `as_checkpoint` reads."""
_PAGE = 256
_channels = msgspec.msgpack.Decoder(dict[str, int]).decode
_metadata = msgspec.json.Decoder(dict[str, object]).decode
_DAMAGED = (msgspec.MsgspecError, AttributeError, TypeError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Asked:
    """Selects checkpoints; None is any. `before` selects ids that sort before it."""

    thread: str | None
    ns: str | None
    id: str | None
    before: str | None = None


@overload
def thread_of(db: sqlite3.Connection, name: str) -> int | None: ...
@overload
def thread_of(db: sqlite3.Connection, name: str, *, add: bool) -> int: ...
def thread_of(db: sqlite3.Connection, name: str, *, add: bool = False) -> int | None:
    """Return the number of a thread; with `add`, a new thread gets one."""
    found = db.execute("SELECT id FROM threads WHERE name = ?", (name,)).fetchone()
    if found is None and add:
        return db.execute("INSERT INTO threads (name) VALUES (?)", (name,)).lastrowid
    return found[0] if found else None


def channels_of(db: sqlite3.Connection, thread: int, ns: str, at: str | None) -> dict[str, int]:
    """Return the rows of a checkpoint's values by channel; none if the checkpoint is missing."""
    query = "SELECT channels FROM checkpoints WHERE thread = ? AND ns = ? AND id = ?"
    row = db.execute(query, (thread, ns, at)).fetchone()
    return channels(row[0]) if row else {}


def channels(data: object) -> dict[str, int]:
    """Decode the rows of values by channel."""
    try:
        return _channels(data)  # type: ignore[arg-type]
    except _DAMAGED as error:
        raise TapeError(f"tracefork: a checkpoint is corrupt: {error}.") from error


def page(
    db: sqlite3.Connection, asked: Asked, after: tuple[str, str, str] | None, size: int | None
) -> list[tuple[Any, ...]]:
    """Return the next rows of checkpoints, the latest first.

    `after` has the id, thread and ns of the previous page's last row; None is the first page.
    """
    clauses = [
        ("name = ?", asked.thread),
        ("ns = ?", asked.ns),
        ("checkpoints.id = ?", asked.id),
        ("checkpoints.id < ?", asked.before),
        ("(checkpoints.id, name, ns) < (?, ?, ?)", after),
    ]
    meant = [(clause, value) for clause, value in clauses if value is not None]
    where = " AND ".join(clause for clause, _ in meant) or "TRUE"
    parameters = [part for _, value in meant for part in _parts(value)]
    return db.execute(
        f"{ROWS} WHERE {where} ORDER BY checkpoints.id DESC, name DESC, ns DESC LIMIT ?",
        (*parameters, min(size or _PAGE, _PAGE)),
    ).fetchall()


def checkpoint_rows(db: sqlite3.Connection, thread: int) -> list[tuple[Any, ...]]:
    """Return ns, id, head and channels of all checkpoints of a thread."""
    query = "SELECT ns, id, head, channels FROM checkpoints WHERE thread = ?"
    return db.execute(query, (thread,)).fetchall()


def as_checkpoint(row: Sequence[Any], value: Callable[[int, int], Value]) -> Checkpoint:
    """Return the checkpoint in a row. `value` returns the value of a thread in a row of bodies.

    Raises:
        TapeError: the row is corrupt.
    """
    thread, name, ns, at, parent, made, head, named, metadata = row
    _check_texts(name, ns, at, parent or "")
    try:
        return Checkpoint(
            name,
            ns,
            at,
            value(thread, head),
            {channel: value(thread, body) for channel, body in channels(named).items()},
            _metadata(metadata),
            parent,
            int(made),
        )
    except _DAMAGED as error:
        raise TapeError(f"tracefork: checkpoint {at} is corrupt: {error}.") from error


def packed(checkpoint: Checkpoint, head: int, values: Mapping[str, int]) -> tuple[object, ...]:
    """Return the columns of a checkpoint from `ns` on.

    Raises:
        UsageError: its metadata are not plain JSON.
    """
    try:
        metadata = msgspec.json.encode(checkpoint.metadata).decode()
    except (*_DAMAGED, OverflowError) as error:
        raise UsageError(
            f"tracefork: the metadata of a checkpoint of {checkpoint.thread!r} are not plain JSON: "
            f"{error}."
        ) from error
    named = msgspec.msgpack.encode(values)
    place = checkpoint.ns, checkpoint.id, checkpoint.parent, checkpoint.made
    return *place, head, named, metadata


def write_rows(
    db: sqlite3.Connection, thread: int, ns: str, at: str
) -> Iterator[tuple[str, int, str, str, str, bytes]]:
    """Yield task, idx, path, channel, tag and sha of each write after a checkpoint."""
    found = db.execute(
        "SELECT task, idx, path, channel, tag, sha FROM writes JOIN bodies ON bodies.id = value "
        "AND bodies.thread = writes.thread "
        "WHERE writes.thread = ? AND ns = ? AND writes.id = ? ORDER BY path, task, idx",
        (thread, ns, at),
    )
    for task, idx, path, channel, tag, sha in found:
        _check_texts(task, path, channel, tag)
        if not isinstance(idx, int) or not isinstance(sha, bytes):
            raise TapeError(f"tracefork: a write after checkpoint {at} is corrupt.")
        yield task, idx, path, channel, tag, sha


def _check_texts(*columns: object) -> None:
    if not all(isinstance(column, str) for column in columns):
        raise TapeError("tracefork: a checkpoint is corrupt: a name in it is not text.")


def matches(checkpoint: Checkpoint, metadata: Mapping[str, object] | None) -> bool:
    """Return whether a checkpoint has these metadata. As in LangGraph, a missing key is None."""
    held = checkpoint.metadata
    return all(held.get(key) == value for key, value in (metadata or {}).items())


def _parts(value: str | tuple[str, str, str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
