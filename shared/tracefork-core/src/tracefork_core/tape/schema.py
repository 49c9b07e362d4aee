"""The SQLite file: its schema, how it is created, opened and told from other files."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from tracefork_core.errors import TapeError, UsageError

APPLICATION_ID = 0x7472666B  # "trfk"
VERSION = 1

_DDL = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, payload BLOB NOT NULL, aside BLOB NOT NULL);
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY, sha BLOB NOT NULL UNIQUE, size INTEGER NOT NULL,
    codec INTEGER NOT NULL, base INTEGER REFERENCES blobs(id), data BLOB NOT NULL);
CREATE TABLE flights (n INTEGER PRIMARY KEY, payload BLOB NOT NULL, aside BLOB NOT NULL);
CREATE TABLE flight_chunks (
    n INTEGER NOT NULL, i INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (n, i)) WITHOUT ROWID;
"""


def create(path: Path, *, overwrite: bool) -> sqlite3.Connection:
    """Create a tape file and return its connection, in WAL mode.

    Raises:
        UsageError: the file exists and `overwrite` is false, or its folder does not exist.
        TapeError: the folder cannot be written.
    """
    if not path.parent.is_dir():
        raise UsageError(f"tracefork: no folder {path.parent} to record {path.name} in.")
    if path.exists():
        if not overwrite:
            raise UsageError(
                f"tracefork: {path} exists and nothing is overwritten unasked. "
                "Record to another name, or pass overwrite=True (--overwrite)."
            )
        _remove(path)
    try:
        # Created empty and exclusively first: two recorders of one file cannot both win.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.executescript(
            f"BEGIN; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={VERSION};{_DDL}"
            "INSERT INTO meta VALUES ('state', 'recording'); COMMIT"
        )
    except FileExistsError as error:
        raise UsageError(f"tracefork: another process is recording to {path}.") from error
    except (OSError, sqlite3.Error) as error:
        raise TapeError(f"tracefork: cannot record to {path}: {error}.") from error
    return db


def _remove(path: Path) -> None:
    """Delete an earlier tape, but never a file that is not one."""
    open_readonly(path).close()
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def open_readonly(path: Path) -> sqlite3.Connection:
    """Open an existing tape for reading.

    Raises:
        UsageError: there is no such file.
        TapeError: the file is not a tape or cannot be read.
    """
    if not path.is_file():
        raise UsageError(f"tracefork: no tape at {path}. `tracefork ls` lists the tapes here.")
    try:
        db = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        db.execute("PRAGMA trusted_schema=OFF")
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        raise TapeError(f"tracefork: {path} is not a tape: {error}.") from error
    if application != APPLICATION_ID:
        db.close()
        raise TapeError(f"tracefork: {path} is not a tape (its application id is {application}).")
    if version > VERSION:
        db.close()
        raise TapeError(
            f"tracefork: {path} has tape format {version}; this tracefork reads up to {VERSION}. "
            "Upgrade tracefork-core."
        )
    return db
