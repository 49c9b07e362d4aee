"""The SQLite file: its tables, its version, its modes, and how a tape is opened."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import quote

from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape import checksum

APPLICATION_ID = 0x7472666B  # "trfk"
VERSION = 1
LOGS = ("-wal", "-shm", "-flight", "-flight-new")
BESIDE = (*LOGS, ".sig")
"""What may lie beside a tape, behind its name: its log, its journal, its signature."""
LARGEST = 256 * 1024 * 1024
"""Bytes of the largest body, plain or packed, that is written to a tape or read from one."""

_THREADS_FROM = 1000
THREADS_VERSION = 1001
"""Of a file of threads; the versions of tapes are below 1000."""

PAGE = 1024  # Tapes are many and mostly small: a page is what the last byte of each table costs.
_GROWTH = 16 * 1024 * 1024
"""Bytes that a row may have more than the files had when they were opened: rows get packed."""

TAPE_TABLES = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "log": (
        "CREATE TABLE log (seq INTEGER PRIMARY KEY, segment INTEGER NOT NULL, "
        "crc INTEGER NOT NULL, events BLOB NOT NULL, bodies BLOB NOT NULL)"
    ),
}

THREADS_TABLES = {
    "threads": "CREATE TABLE threads (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "checkpoints": (
        "CREATE TABLE checkpoints (thread INTEGER NOT NULL, ns TEXT NOT NULL, id TEXT NOT NULL, "
        "parent TEXT, made INTEGER NOT NULL, head INTEGER NOT NULL, channels BLOB NOT NULL, "
        "metadata TEXT NOT NULL, PRIMARY KEY (thread, ns, id)) WITHOUT ROWID"
    ),
    "writes": (
        "CREATE TABLE writes (thread INTEGER NOT NULL, ns TEXT NOT NULL, id TEXT NOT NULL, "
        "task TEXT NOT NULL, idx INTEGER NOT NULL, path TEXT NOT NULL, channel TEXT NOT NULL, "
        "value INTEGER NOT NULL, PRIMARY KEY (thread, ns, id, task, idx)) WITHOUT ROWID"
    ),
    "bodies": (
        "CREATE TABLE bodies (id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, sha BLOB NOT NULL, "
        "tag TEXT NOT NULL, size INTEGER NOT NULL, cost INTEGER NOT NULL, depth INTEGER NOT NULL, "
        "base INTEGER, pieces BLOB, data BLOB, UNIQUE (thread, sha, tag))"
    ),
}
"""The tables of a file of threads: what a checkpointer keeps every day, and no recording."""


Mode = Literal["safe", "metadata", "sealed", "raw"]


def open_readonly(path: Path) -> sqlite3.Connection:
    """Open an existing tape for reading, whatever its version.

    Raises:
        UsageError: there is no such file.
        TapeError: the file is not a tape or cannot be read.
    """
    if is_folder(path):
        raise UsageError(f"tracefork: {path} is a folder, not a tape. {_LISTS}")
    if not os.path.isfile(path):  # noqa: PTH113 - a folder nobody may enter is no traceback
        raise UsageError(f"tracefork: no tape at {path}. {_LISTS}")
    if holds_threads(path):
        raise TapeError(are_threads(path))
    try:
        if path.stat().st_size == 0:
            raise TapeError(f"tracefork: {path} is not a tape: it is empty. {_LISTS}")
        # Nobody writes to a tape without a log beside it: reading one then leaves no file behind.
        has_log = beside(path, "-wal").exists()
    except OSError as error:
        raise TapeError(f"tracefork: cannot read {path}: {error}.") from error
    if has_log and (db := _as_closed(path)) is not None:
        return db
    try:
        return _opened(path, immutable=not has_log)
    except TapeError:
        # A recording that began at this moment lays out its file.
        if has_log or not any(beside(path, suffix).exists() for suffix in ("-wal", "-journal")):
            raise
        return _opened(path, immutable=False)


def _as_closed(path: Path) -> sqlite3.Connection | None:
    """Open a file that is as it was closed; None where it is not, or nobody closed it.

    A log beside such a file is another recording's, whose tape was killed, and then removed or
    replaced: SQLite would take it for this one's.
    """
    try:
        db = _opened(path, immutable=True)
    except TapeError:
        return None
    try:
        if checksum.holds(path, db):
            return db
    except (OSError, ValueError, sqlite3.Error, MemoryError):
        pass
    db.close()
    return None


def _opened(path: Path, *, immutable: bool) -> sqlite3.Connection:
    mode = "mode=ro&immutable=1" if immutable else "mode=ro"
    try:
        db = connect(f"file:{quote(os.fsencode(path.absolute()))}?{mode}", uri=True)
    except (OSError, sqlite3.Error) as error:
        raise TapeError(f"tracefork: cannot read {path}: {error}.") from error
    try:
        _check(path, db, may_grow=not immutable)
    except (sqlite3.Error, MemoryError, UnicodeDecodeError) as error:
        db.close()
        if not immutable and getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CANTOPEN:
            raise TapeError(
                f"tracefork: cannot read {path}: a part of it lies in its log, "
                f"{beside(path, '-wal').name}, and SQLite reads that only where "
                f"{beside(path, '-shm').name} is, or can be made. Copy the tape, with all that "
                "lies beside it, to a folder that can be written."
            ) from error
        raise TapeError(
            f"tracefork: {path} is not a tape, or is damaged: {error}. {_LISTS}"
        ) from error
    except BaseException:
        db.close()
        raise
    return db


def holds_threads(path: Path) -> bool:
    """Return whether a file of ours is a file of threads, and no tape, by its first bytes."""
    return (found := _version_of(path)) is not None and found >= _THREADS_FROM


def is_tape(path: Path) -> bool:
    """Return whether a file of ours is a tape, by its first bytes."""
    return (found := _version_of(path)) is not None and found < _THREADS_FROM


def check_threads(path: Path, db: sqlite3.Connection) -> None:
    """Make sure that a file of threads is one before anything in it is trusted.

    Raises:
        TapeError: it is none, or one of a later version.
    """
    db.execute("PRAGMA trusted_schema=OFF")
    if version(db) > THREADS_VERSION:
        raise TapeError(
            f"tracefork: {path} holds threads in format {version(db)}; this tracefork-core knows "
            f"{THREADS_VERSION}. Upgrade tracefork-core."
        )
    db.execute("PRAGMA cell_size_check=ON")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST + 1024)
    _check_tables(path, db, THREADS_TABLES, may_grow=False)


def version(db: sqlite3.Connection) -> int:
    """Return the format version of an open tape."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def beside(path: Path, suffix: str) -> Path:
    """Return the file that belongs to a tape under a suffix."""
    return path.with_name(path.name + suffix)


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder; one that nobody may look at is none."""
    return os.path.isdir(path)  # noqa: PTH112 - as above


def connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    """Return a connection with no transaction but those that are asked for, for any thread."""
    return sqlite3.connect(name, uri=uri, isolation_level=None, check_same_thread=False)


def _check(path: Path, db: sqlite3.Connection, *, may_grow: bool) -> None:
    """Make sure that the file is a tape we can read before anything in it is trusted."""
    db.execute("PRAGMA trusted_schema=OFF")
    db.execute("PRAGMA cell_size_check=ON")
    # No value is larger than the files it lies in: a damaged length is not even allocated.
    held = sum(file.stat().st_size for file in (path, beside(path, "-wal")) if file.exists())
    most = max(held, PAGE) + (_GROWTH if may_grow else 0)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(LARGEST, most))
    application = _application(db)
    if application != APPLICATION_ID:
        raise TapeError(
            f"tracefork: {path} is not a tape (its application id is {application}). {_LISTS}"
        )
    # A newer tracefork may keep more tables; nothing of them is ever run or read.
    _check_tables(path, db, TAPE_TABLES, may_grow=version(db) > VERSION)


def _check_tables(
    path: Path, db: sqlite3.Connection, expected: dict[str, str], *, may_grow: bool
) -> None:
    found = {name: (kind, sql) for kind, name, sql in db.execute(_SCHEMA)}
    for name, sql in expected.items():
        if found.get(name) != ("table", sql):
            raise TapeError(
                f"tracefork: {path} calls itself a tape, but its table {name} is not that of one."
            )
    for name in found.keys() - expected.keys():
        kind, sql = found[name]
        if not may_grow or kind != "table" or not _is_plain(sql):
            raise TapeError(
                f"tracefork: {path} holds a {kind} {name} that no tape has; nothing of it was read."
            )


def _application(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA application_id").fetchone()[0])


def _version_of(path: Path) -> int | None:
    """Return the version that a file of ours declares; None where it is none.

    SQLite reads it: as POSIX has it, whoever else closes the file drops this process's locks on it.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - as above; to open a pipe is to wait for a writer
        return None
    name = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro&immutable=1"
    try:
        with closing(connect(name, uri=True)) as db:
            found = version(db) if _application(db) == APPLICATION_ID else None
    except (sqlite3.Error, MemoryError):
        return None
    return found & 0xFFFF_FFFF if found is not None else None


def are_threads(path: Path) -> str:
    """Return what to say of a file of threads in the place of a tape."""
    return f"tracefork: {path} holds the threads of a checkpointer, and no recording."


_LISTS = "`tracefork ls` lists the tapes of a folder."
_SCHEMA = (
    # Indices that SQLite makes for a UNIQUE or PRIMARY KEY of the tables above have no SQL.
    "SELECT type, name, sql FROM sqlite_schema WHERE NOT (type = 'index' AND sql IS NULL)"
)


def _is_plain(sql: object) -> bool:
    return isinstance(sql, str) and sql.startswith("CREATE TABLE ")


def as_mode(name: str) -> Mode:
    """Return the mode of a name.

    Raises:
        UsageError: there is none.
    """
    for mode in get_args(Mode):
        if name == mode:
            return mode  # type: ignore[no-any-return]
    raise UsageError(f"tracefork: no mode {name!r}. There are {', '.join(get_args(Mode))}.")
