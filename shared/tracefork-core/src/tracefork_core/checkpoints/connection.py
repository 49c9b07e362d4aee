"""The connection to a file of threads: opened at the first use, one for each process.

The file appears at its first put, whole: other processes see no file, or one with all its tables.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape import Tape, schema
from tracefork_core.tape.schema import THREADS_TABLES

MEMORY = ":memory:"
Recorded = Callable[[Path], tuple[sqlite3.Connection, Tape]]
_PATIENCE = 60
"""Seconds to wait for other processes to finish writing."""
_PAGE = 4096
_CHECKPOINT = 256
"""Pages in the log before they are checkpointed into the file."""
# Connections inherited by a forked process, or to a file that is gone. Closing one would write its
# log into a file that belongs to another process.
_abandoned: list[sqlite3.Connection] = []


class Connection:
    """The one connection of this process to a file, shared by its threads.

    If the file is a tape, `recorded` opens its checkpoints, read-only.
    """

    def __init__(self, path: Path | None, recorded: Recorded) -> None:
        self._path = path
        self._recorded = recorded
        self.tape: Tape | None = None
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._opened: tuple[int, int, int] | None = None
        self._end: weakref.finalize[..., Connection] | None = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Yield the connection for reading; None if there is no file yet."""
        with self._lock, self._explained("read"):
            yield self._current()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction, which is committed when the block ends."""
        with self._lock, self._explained("write to"):
            db = self._current()
            if db is None:
                assert self._path is not None
                _create(self._path)
                db = self._current()
            assert db is not None
            if self.tape is not None:
                raise UsageError(
                    f"tracefork: {self._path} is a finished recording; a checkpointer cannot write "
                    "to it. Give it another file. To resume from a recorded checkpoint, run inside "
                    "tracefork_core.replay or tracefork_core.fork."
                )
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # If the disk is full, SQLite has rolled back already.
                    db.execute("ROLLBACK")
                raise

    def forget_deleted(self) -> None:
        """Erase deleted data from the log, and give free pages back."""
        with self._lock, self._explained("write to"):
            if (db := self._current()) is not None and self._path is not None:
                db.executescript(
                    "PRAGMA incremental_vacuum"
                )  # One page per step: run it to its end.
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the file, until it is needed again."""
        with self._lock:
            if self._end is not None and self._end.detach() and self._db is not None:
                _close(self._db, self.tape, os.getpid())
            self._db = self._opened = self._end = self.tape = None

    def _current(self) -> sqlite3.Connection | None:
        """Return a connection to the file that is there now, after a fork or a replacement too."""
        if self._path is None:
            if self._db is None:
                self._hold(_in_memory())
            return self._db
        try:
            file = os.stat(self._path)  # noqa: PTH116 - runs at every call
        except FileNotFoundError:
            file = None
        found = (os.getpid(), file.st_dev, file.st_ino) if file is not None else None
        if found != self._opened:
            self._abandon()
        if found is not None and self._db is None:
            if schema.is_tape(self._path):
                db, self.tape = self._recorded(self._path)
                self._hold(db)
            else:
                self._hold(_open(self._path))
            self._opened = found
        return self._db

    def given_away(self) -> sqlite3.Connection:
        """Return the connection and hand it over to the caller."""
        db = self._current()
        assert db is not None
        if self._end is not None:
            self._end.detach()
        self._db = self._end = None
        return db

    def _hold(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._end = weakref.finalize(self, _close, db, self.tape, os.getpid())

    def _abandon(self) -> None:
        if self._db is not None and self._end is not None:
            self._end.detach()
            _abandoned.append(self._db)
        self._db = self._opened = self._end = self.tape = None

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise TapeError(
                    f"tracefork: {self._path} was locked for {_PATIENCE} s: another process is "
                    "writing to it. Try again when that has ended."
                ) from error
            raise self._unable(what, error) from error
        except (sqlite3.Error, OSError, MemoryError, OverflowError) as error:
            raise self._unable(what, error) from error

    def _unable(self, what: str, error: Exception) -> TapeError:
        words = str(error) or type(error).__name__
        return TapeError(f"tracefork: cannot {what} {self._path or 'memory'}: {words}.")


def _create(path: Path) -> None:
    """Create the file with its tables: under a temporary name first, so it appears whole."""
    if not path.parent.is_dir():
        raise UsageError(
            f"tracefork: cannot create {path.name}: the folder {path.parent} does not exist."
        )
    draft = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(_connect(str(draft))) as db:
            db.execute(f"PRAGMA page_size={_PAGE}")
            db.execute("PRAGMA auto_vacuum=INCREMENTAL")
            _lay_out(db)
            db.execute("PRAGMA journal_mode=WAL")
        _publish(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _publish(draft: Path, path: Path) -> None:
    """Give the file its name, unless another process created one first."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:  # Some file systems have no hard links.
        if not path.exists():
            draft.rename(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    file = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # Some file systems cannot sync folders.
            os.fsync(file)
    finally:
        os.close(file)


def _open(path: Path) -> sqlite3.Connection:
    if path.is_dir():
        raise UsageError(f"tracefork: {path} is a folder. Name a file for the threads.")
    if path.stat().st_size == 0:
        raise TapeError(f"tracefork: {path} is empty, not a file of threads. Delete it first.")
    if not schema.holds_threads(path):
        raise TapeError(f"tracefork: {path} is not a file of threads. It was not changed.")
    db = _connect(f"file:{quote(os.fsencode(path.absolute()))}?mode=rw", uri=True)
    try:
        schema.check_threads(path, db)
        _configure(db)
    except BaseException:
        db.close()
        raise
    return db


def _in_memory() -> sqlite3.Connection:
    db = _connect(MEMORY)
    _lay_out(db)
    return db


def _lay_out(db: sqlite3.Connection) -> None:
    db.execute("BEGIN")
    db.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
    db.execute(f"PRAGMA user_version={schema.THREADS_VERSION}")
    for table in THREADS_TABLES.values():
        db.execute(table)
    db.execute("COMMIT")


def _configure(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA synchronous=FULL")
    db.execute("PRAGMA secure_delete=ON")
    db.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT}")
    db.execute(f"PRAGMA journal_size_limit={_CHECKPOINT * _PAGE}")


def _connect(name: str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        name, timeout=_PATIENCE, uri=uri, isolation_level=None, check_same_thread=False
    )


def _close(db: sqlite3.Connection, tape: Tape | None, process: int) -> None:
    if os.getpid() == process:
        db.close()
        if tape is not None:
            tape.close()
    else:
        _abandoned.append(db)
