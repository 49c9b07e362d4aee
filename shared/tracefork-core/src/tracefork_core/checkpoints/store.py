"""The threads of a checkpointer in one SQLite file, or in memory.

Several processes may write at once. What a call puts is on disk when the call returns. The file is
opened at the first use: making a store costs nothing and leaves nothing behind.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from weakref import WeakValueDictionary

from tracefork_core.checkpoints import removal
from tracefork_core.checkpoints.bodies import BodyStore, Elsewhere
from tracefork_core.checkpoints.connection import MEMORY, Connection
from tracefork_core.checkpoints.contract import Bodies, Call, Rests
from tracefork_core.checkpoints.rows import (
    Asked,
    as_checkpoint,
    channels_of,
    matches,
    packed,
    page,
    thread_of,
    write_rows,
)
from tracefork_core.errors import TapeError
from tracefork_core.tape import Tape
from tracefork_core.tape.checkpoint import Checkpoint, Value, Write

_IGNORE, _REPLACE = (
    f"INSERT OR {verb} INTO writes (thread, ns, id, task, idx, path, channel, value) "  # noqa: S608
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    for verb in ("IGNORE", "REPLACE")
)


class CheckpointFile:
    """Checkpoints by thread, in a file or in memory. Safe to call from any thread and process.

    Args:
        path: the file, or ":memory:".
        elsewhere: returns the bytes of values that are put without them.
    """

    def __init__(self, path: str | Path = MEMORY, *, elsewhere: Elsewhere | None = None) -> None:
        self.path = None if str(path) == MEMORY else Path(path).absolute()
        self._file = Connection(self.path, _recorded)
        self._bodies = BodyStore(elsewhere)

    def called(self, call: Call, thread: str, at: str | None) -> None:
        """Do nothing: only sessions need to know what a thread is read for."""

    def put(self, checkpoint: Checkpoint, bodies: Bodies) -> None:
        with self._file.writing() as db:
            thread = thread_of(db, checkpoint.thread, add=True)
            like = channels_of(db, thread, checkpoint.ns, checkpoint.parent)
            channels = {
                channel: self._bodies.put(
                    db, thread, value, bodies.get(value.sha), like.get(channel)
                )
                for channel, value in checkpoint.values.items()
            }
            head = self._bodies.put(
                db,
                thread,
                checkpoint.head,
                bodies.get(checkpoint.head.sha),
                _head_of(db, thread, checkpoint),
            )
            db.execute(
                "INSERT OR REPLACE INTO checkpoints "
                "(thread, ns, id, parent, made, head, channels, metadata) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (thread, *packed(checkpoint, head, channels)),
            )

    def put_writes(self, writes: Sequence[Write], bodies: Bodies) -> None:
        if not writes:
            return
        with self._file.writing() as db:
            for write in writes:
                thread = thread_of(db, write.thread, add=True)
                like = channels_of(db, thread, write.ns, write.id).get(write.channel)
                body = bodies.get(write.value.sha)
                value = self._bodies.put(db, thread, write.value, body, like)
                place = thread, write.ns, write.id, write.task, write.idx
                db.execute(
                    _REPLACE if write.idx < 0 else _IGNORE,
                    (*place, write.path, write.channel, value),
                )

    def find(self, thread: str, ns: str, at: str | None = None) -> Checkpoint | None:
        return next(self.search(thread, ns, at, limit=1), None)

    def search(
        self,
        thread: str | None = None,
        ns: str | None = None,
        at: str | None = None,
        *,
        before: str | None = None,
        metadata: Mapping[str, object] | None = None,
        limit: int | None = None,
    ) -> Iterator[Checkpoint]:
        after: tuple[str, str, str] | None = None
        left = limit
        while left is None or left > 0:
            with self._file.reading() as db:
                if db is None:
                    return
                size = left if left is not None and not metadata else None
                rows = page(db, Asked(thread, ns, at, before), after, size)
                found = [self._checkpoint(db, row) for row in rows]
            if not found:
                return
            for checkpoint in found:
                if matches(checkpoint, metadata) and (left is None or left > 0):
                    yield checkpoint
                    left = left - 1 if left is not None else None
            last = found[-1]
            after = (last.id, last.thread, last.ns)

    def writes(self, thread: str, ns: str, at: str) -> list[Write]:
        with self._file.reading() as db:
            number = thread_of(db, thread) if db is not None else None
            if db is None or number is None:
                return []
            return [
                Write(thread, ns, at, task, idx, channel, Value(tag, sha.hex()), path)
                for task, idx, path, channel, tag, sha in write_rows(db, number, ns, at)
            ]

    def body(self, thread: str, value: Value) -> bytes:
        with self._file.reading() as db:
            number = thread_of(db, thread) if db is not None else None
            if db is None or number is None:
                raise TapeError(f"tracefork: {self.path or 'memory'} has no thread {thread!r}.")
            if (tape := self._file.tape) is not None:
                return tape.blob(value.sha)
            return self._bodies.body(db, number, value)

    def delete_thread(self, thread: str) -> None:
        self._remove(lambda db: removal.delete_thread(db, thread_of(db, thread)))

    def delete_for_runs(self, runs: Sequence[str]) -> None:
        if runs:
            self._remove(lambda db: removal.delete_for_runs(db, self._bodies, runs))

    def copy_thread(self, source: str, target: str) -> None:
        if source != target:
            self._remove(lambda db: removal.copy_thread(db, source, target))

    def prune(
        self,
        threads: Sequence[str],
        *,
        keep_latest: bool,
        rests: Rests | None = None,
    ) -> None:
        def prune(db: sqlite3.Connection) -> None:
            for name in threads:
                thread = thread_of(db, name)
                if thread is None or not keep_latest:
                    removal.delete_thread(db, thread)
                    continue
                kept = removal.latest(db, thread, self._checkpoint, rests)
                removal.keep_only(db, self._bodies, thread, kept)

        if threads:
            self._remove(prune)

    def given_away(self) -> sqlite3.Connection:
        """Hand the connection over to the caller; this store is empty again."""
        return self._file.given_away()

    def close(self) -> None:
        """Close the file. It opens again when it is used."""
        self._file.close()

    def _remove(self, action: Callable[[sqlite3.Connection], None]) -> None:
        """Delete rows, and erase their data."""
        with self._file.reading() as db:
            if db is None:
                return
        with self._file.writing() as db:
            action(db)
            self._bodies.forget()
        self._file.forget_deleted()

    def _checkpoint(self, db: sqlite3.Connection, row: Sequence[object]) -> Checkpoint:
        return as_checkpoint(row, lambda thread, body: self._bodies.value(db, thread, body))


def _recorded(path: Path) -> tuple[sqlite3.Connection, Tape]:
    """Return the checkpoints of a tape as a database in memory, and the tape with their values."""
    from tracefork_core.checkpoints.lineage import lineage_of

    tape = Tape.open(path)
    try:
        recorded = lineage_of(tape)
        memory = in_memory(tape.blob)
        for one in chain(recorded.known(), *(recorded.put(name) for name in recorded.threads)):
            if isinstance(one, Checkpoint):
                memory.put(one, {})
            else:
                memory.put_writes(one, {})
    except BaseException:
        tape.close()
        raise
    return memory.given_away(), tape


_lock = threading.Lock()
_files: WeakValueDictionary[Path, CheckpointFile] = WeakValueDictionary()


def checkpoint_file(path: str | Path) -> CheckpointFile:
    """Return the one store of this process for a file, open while it is referenced.

    Links and other spellings of the path give the same store; ":memory:" gives a new one each time.
    """
    if str(path) == MEMORY:
        return CheckpointFile()
    target = Path(os.path.realpath(path))  # noqa: PTH - resolve() raises for a loop of links
    with _lock:
        if (store := _files.get(target)) is None:
            store = _files[target] = CheckpointFile(target)
        return store


def in_memory(elsewhere: Elsewhere | None = None) -> CheckpointFile:
    """Return a new store in memory; `elsewhere` returns the bytes of values put without them."""
    return CheckpointFile(MEMORY, elsewhere=elsewhere)


def _head_of(db: sqlite3.Connection, thread: int | None, checkpoint: Checkpoint) -> int | None:
    query = "SELECT head FROM checkpoints WHERE thread = ? AND ns = ? AND id = ?"
    found = db.execute(query, (thread, checkpoint.ns, checkpoint.parent)).fetchone()
    return found[0] if found else None
