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
MARK = ".mark"
BESIDE = (*LOGS, ".sig", MARK)
"""Suffixes of files that may lie beside a tape: log, journal, signature, the mark of a recorder."""
LARGEST = 256 * 1024 * 1024
"""The largest body in bytes, plain or packed, that is written to a tape or read from one."""

_THREADS_FROM = 1000
THREADS_VERSION = 1001
"""The version of a file of threads. Versions of tapes are below 1000."""

PAGE = 1024  # Tapes are many and small; the last byte of each table costs a whole page.
_GROWTH = 16 * 1024 * 1024
"""A row may be larger than the files were when they were opened, by so many bytes."""

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
"""The tables of a file of threads, which a checkpointer writes outside of recordings."""

_LISTS = "`tracefork ls` lists the tapes in a folder."
_SCHEMA = (
    # The indices that SQLite makes for a UNIQUE or PRIMARY KEY of the tables have no SQL.
    "SELECT type, name, sql FROM sqlite_schema WHERE NOT (type = 'index' AND sql IS NULL)"
)

Mode = Literal["safe", "metadata", "sealed", "raw"]
"""What a tape stores of an exchange.

safe       everything but secrets, which are masked before anything is hashed
metadata   hashes and sizes instead of bodies: such a tape compares, but does not replay
sealed     like safe, and encrypted for named readers
raw        everything except the headers that carry credentials
"""


def open_readonly(path: Path) -> sqlite3.Connection:
    """Open an existing tape for reading.

    Raises:
        UsageError: no such file exists.
        TapeError: the file is not a tape, or cannot be read.
    """
    if is_folder(path):
        raise UsageError(f"tracefork: {path} is a folder, not a tape. {_LISTS}")
    if not os.path.isfile(path):  # noqa: PTH113 - no traceback in a folder without permission
        raise UsageError(f"tracefork: {path} does not exist. {_LISTS}")
    if holds_threads(path):
        raise TapeError(are_threads(path))
    try:
        if path.stat().st_size == 0:
            raise TapeError(f"tracefork: {path} is not a tape: the file is empty. {_LISTS}")
        # A tape without a log has no writer. It is opened so that reading leaves no file behind.
        has_log = beside(path, "-wal").exists()
    except OSError as error:
        raise TapeError(f"tracefork: cannot read {path}: {error}.") from error
    if has_log and (db := _as_closed(path)) is not None:
        return db
    try:
        return _opened(path, immutable=not has_log)
    except TapeError:
        # A recording may have begun at this moment, and still be laying out its file.
        if has_log or not any(beside(path, suffix).exists() for suffix in ("-wal", "-journal")):
            raise
        return _opened(path, immutable=False)


def _as_closed(path: Path) -> sqlite3.Connection | None:
    """Open a file that is unchanged since it was closed; return None for any other file.

    A log beside such a file belongs to another recording, which was killed and whose tape was then
    removed or replaced. SQLite would take it for the log of this one.
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
                f"tracefork: cannot read {path}: part of it is in {beside(path, '-wal').name}, and "
                f"SQLite needs to write {beside(path, '-shm').name} to read that. Copy the tape "
                f"and the files beside it ({path.name}-…) to a folder that you can write to."
            ) from error
        raise TapeError(
            f"tracefork: {path} is not a tape, or is corrupt: {error}. {_LISTS}"
        ) from error
    except BaseException:
        db.close()
        raise
    return db


def holds_threads(path: Path) -> bool:
    """Return whether the header of a file says that it is a file of threads."""
    return (number := _version_of(path)) is not None and number >= _THREADS_FROM


def is_tape(path: Path) -> bool:
    """Return whether the header of a file says that it is a tape."""
    return (number := _version_of(path)) is not None and number < _THREADS_FROM


def check_threads(path: Path, db: sqlite3.Connection) -> None:
    """Check the schema of a file of threads before anything in it is trusted.

    Raises:
        TapeError: it is not a file of threads, or has a later version.
    """
    db.execute("PRAGMA trusted_schema=OFF")
    if version(db) > THREADS_VERSION:
        raise TapeError(
            f"tracefork: {path} holds threads in format {version(db)}; this tracefork-core reads "
            f"format {THREADS_VERSION}. Upgrade tracefork-core."
        )
    db.execute("PRAGMA cell_size_check=ON")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST + 1024)
    _check_tables(path, db, THREADS_TABLES, may_grow=False)


def version(db: sqlite3.Connection) -> int:
    """Return the format version that a file declares."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def beside(path: Path, suffix: str) -> Path:
    """Return the path of the file beside a tape that has this suffix."""
    return path.with_name(path.name + suffix)


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder that can be looked at."""
    return os.path.isdir(path)  # noqa: PTH112 - no traceback without permission


def connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    """Return a connection in autocommit mode that any thread may use."""
    return sqlite3.connect(name, uri=uri, isolation_level=None, check_same_thread=False)


def _check(path: Path, db: sqlite3.Connection, *, may_grow: bool) -> None:
    """Check the schema of a tape before anything in it is trusted."""
    db.execute("PRAGMA trusted_schema=OFF")
    db.execute("PRAGMA cell_size_check=ON")
    # No value is larger than its files, so a corrupt length is never allocated.
    held = sum(file.stat().st_size for file in (path, beside(path, "-wal")) if file.exists())
    most = max(held, PAGE) + (_GROWTH if may_grow else 0)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(LARGEST, most))
    application = _application(db)
    if application != APPLICATION_ID:
        raise TapeError(
            f"tracefork: {path} is not a tape: its application id is {application:#x}, not "
            f"{APPLICATION_ID:#x}. {_LISTS}"
        )
    # A newer tracefork may add tables. This one never reads them, nor runs anything in them.
    _check_tables(path, db, TAPE_TABLES, may_grow=version(db) > VERSION)


def _check_tables(
    path: Path, db: sqlite3.Connection, expected: dict[str, str], *, may_grow: bool
) -> None:
    actual = {name: (kind, sql) for kind, name, sql in db.execute(_SCHEMA)}
    for name, sql in expected.items():
        if actual.get(name) != ("table", sql):
            if may_grow:
                raise TapeError(
                    f"tracefork: {path} has tape format {version(db)}; this tracefork-core reads "
                    f"format {VERSION}. Upgrade tracefork-core."
                )
            raise TapeError(
                f"tracefork: {path} is corrupt: it has no table `{name}` in the expected form."
            )
    for name in actual.keys() - expected.keys():
        kind, sql = actual[name]
        if not may_grow or kind != "table" or not _is_plain(sql):
            raise TapeError(
                f"tracefork: {path} contains an unexpected {kind} `{name}`; tracefork refuses to "
                "open it."
            )


def _application(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA application_id").fetchone()[0])


def _version_of(path: Path) -> int | None:
    """Return the version in the header of a file, None if tracefork did not write the file.

    SQLite reads it, not `open`: under POSIX, closing any other descriptor of the file would drop
    the locks that this process holds on it.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - no permission: no traceback; a pipe would block
        return None
    name = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro&immutable=1"
    try:
        with closing(connect(name, uri=True)) as db:
            number = version(db) if _application(db) == APPLICATION_ID else None
    except (sqlite3.Error, MemoryError):
        return None
    return number & 0xFFFF_FFFF if number is not None else None


def are_threads(path: Path) -> str:
    """Return the error for a file of threads that was named as a tape."""
    return f"tracefork: {path} holds the threads of a checkpointer, not a recording."


def _is_plain(sql: object) -> bool:
    return isinstance(sql, str) and sql.startswith("CREATE TABLE ")


def as_mode(name: str) -> Mode:
    """Return the mode with this name.

    Raises:
        UsageError: there is no such mode.
    """
    for mode in get_args(Mode):
        if name == mode:
            return mode  # type: ignore[no-any-return]
    modes = ", ".join(get_args(Mode))
    raise UsageError(f"tracefork: there is no mode {name!r}. The modes are {modes}.")
