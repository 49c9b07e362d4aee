"""The SQLite file: its schema, how it is created, opened and told from other files."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from tracefork_core.errors import TapeError, UsageError

APPLICATION_ID = 0x7472666B  # "trfk"
VERSION = 1
LARGEST = 256 * 1024 * 1024
"""Bytes of the largest body, plain or packed, that is written to a tape or read from one."""

_TABLES = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "events": (
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, "
        "payload BLOB NOT NULL, aside BLOB NOT NULL)"
    ),
    "blobs": (
        "CREATE TABLE blobs (id INTEGER PRIMARY KEY, sha BLOB NOT NULL UNIQUE, "
        "size INTEGER NOT NULL, codec INTEGER NOT NULL, base INTEGER REFERENCES blobs(id), "
        "data BLOB NOT NULL)"
    ),
    "flights": (
        "CREATE TABLE flights (n INTEGER PRIMARY KEY, payload BLOB NOT NULL, aside BLOB NOT NULL)"
    ),
    "flight_chunks": (
        "CREATE TABLE flight_chunks (n INTEGER NOT NULL, turn INTEGER NOT NULL, "
        "data BLOB NOT NULL, PRIMARY KEY (n, turn)) WITHOUT ROWID"
    ),
}


def create(path: Path, *, overwrite: bool) -> sqlite3.Connection:
    """Create a tape file and return its connection, in WAL mode.

    Raises:
        UsageError: the file exists and `overwrite` is false, somebody records to it, or its folder
            does not exist.
        TapeError: the file to overwrite is not a tape, or the folder cannot be written.
    """
    if not path.parent.is_dir():
        raise UsageError(f"tracefork: no folder {path.parent} to record {path.name} in.")
    if path.is_dir():
        raise UsageError(f"tracefork: {path} is a folder; name a file to record to.")
    if os.path.lexists(path):
        if not overwrite:
            raise UsageError(
                f"tracefork: {path} exists and nothing is overwritten unasked. "
                "Record to another name, or pass overwrite=True (--overwrite)."
            )
        _remove(path)
    try:
        # Created empty and exclusively first: two recorders of one file cannot both win.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return _lay_out(path)
    except FileExistsError as error:
        raise _is_taken(path) from error
    except (OSError, sqlite3.Error) as error:
        raise TapeError(f"tracefork: cannot record to {path}: {error}.") from error


def open_readonly(path: Path) -> sqlite3.Connection:
    """Open an existing tape for reading.

    Raises:
        UsageError: there is no such file.
        TapeError: the file is not a tape or cannot be read.
    """
    if path.is_dir():
        raise UsageError(f"tracefork: {path} is a folder, not a tape.")
    if not path.is_file():
        raise UsageError(f"tracefork: no tape at {path}. `tracefork ls` lists the tapes here.")
    try:
        if path.stat().st_size == 0:
            raise TapeError(f"tracefork: {path} is not a tape: it is empty.")
        db = _connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
    except (OSError, sqlite3.Error) as error:
        raise TapeError(f"tracefork: cannot read {path}: {error}.") from error
    try:
        _check(path, db)
    except sqlite3.Error as error:
        db.close()
        raise TapeError(f"tracefork: {path} is not a tape, or is damaged: {error}.") from error
    except BaseException:
        db.close()
        raise
    return db


def _connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(name, uri=uri, isolation_level=None, check_same_thread=False)


def _lay_out(path: Path) -> sqlite3.Connection:
    """Write the schema in one atomic step: a file of ours is empty or a tape, never half of one."""
    db = _connect(str(path))
    try:
        # Chunks in flight leave free pages behind; this lets the writer hand them back.
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")
        db.execute("BEGIN")
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={VERSION}")
        for table in _TABLES.values():
            db.execute(table)
        db.execute("INSERT INTO meta VALUES ('state', 'recording')")
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
    except BaseException:
        db.close()
        raise
    return db


def _check(path: Path, db: sqlite3.Connection) -> None:
    """Make sure that the file is a tape we can read before anything in it is trusted."""
    db.execute("PRAGMA trusted_schema=OFF")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise TapeError(f"tracefork: {path} is not a tape (its application id is {application}).")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise TapeError(
            f"tracefork: {path} has tape format {version}; this tracefork reads up to {VERSION}. "
            "Upgrade tracefork-core."
        )
    found = dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
    for name, sql in _TABLES.items():
        if found.get(name) != sql:
            raise TapeError(
                f"tracefork: {path} calls itself a tape, but its table {name} is not that of one."
            )


def _remove(path: Path) -> None:
    """Delete an earlier tape, but never a file that is not one, nor one that is in use."""
    if path.exists() and path.stat().st_size == 0:
        path.unlink()  # A recording that was killed before its first byte.
        return
    open_readonly(path).close()
    try:
        with closing(_connect(str(path))) as db:
            db.execute("PRAGMA busy_timeout=0")
            db.execute("PRAGMA journal_mode=DELETE")  # Refused while anybody else has it open.
    except sqlite3.OperationalError as error:
        raise _is_taken(path) from error
    except sqlite3.Error as error:
        raise TapeError(f"tracefork: cannot overwrite {path}: {error}.") from error
    for suffix in ("-wal", "-shm", ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _is_taken(path: Path) -> UsageError:
    return UsageError(
        f"tracefork: {path} is in use: another recording writes to it, or somebody reads it. "
        "Record to another name, or end that first."
    )
