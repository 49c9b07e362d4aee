"""The file of a tape while it is written: it commits events and bodies, then closes the tape."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracefork_core.errors import TapeError, UnwritableError
from tracefork_core.tape import checksum, creation
from tracefork_core.tape.blobs import BLOB, BlobWriter, Like
from tracefork_core.tape.branches import Origin
from tracefork_core.tape.digest import canonical
from tracefork_core.tape.event import Structure, line, numbered_payloads
from tracefork_core.tape.log import LogReader, LogWriter
from tracefork_core.tape.schema import Mode
from tracefork_core.tape.sealing import Key

_LARGE = 32 * 1024
_LARGE_CHECKPOINT = 2048  # Pages of 1 KB.
_WASTE = 32
"""One page in so many may be unused in a closed tape."""

Body = tuple[bytes, str, Like]
"""A body, its address, and where to look for its base."""


class TapeFile:
    """One tape, written by one process. Not safe to use from two threads at once."""

    def __init__(
        self,
        path: Path,
        *,
        overwrite: bool = False,
        mode: Mode = "safe",
        key: Key | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.path = path
        self.absolute = path.absolute()
        """The path, even if the current folder changes."""
        self.cipher = key.seal if key else None
        self.blobs = BlobWriter()
        self._db = creation.create(path, overwrite=overwrite)
        self._identity = _identity(self.absolute)
        self._log = LogWriter(self._db, self.cipher)
        self._is_large = False
        self._keeps_bodies = mode != "metadata"
        try:
            self._set(
                mode=mode,
                key=key.wrapped if key else None,
                origin=canonical(origin) if origin else None,
            )
        except BaseException:
            self.discard()
            raise

    def commit(self, events: bytes, bodies: Iterable[Body] = ()) -> None:
        """Write lines of events, and the bodies they name, in one durable transaction.

        Raises:
            TapeError: they cannot be written; none of them is on the tape.
        """
        new_bytes: list[bytes] = []
        if self._log.is_full:
            with self._transaction():
                self._log.pack()
        try:
            blobs: list[bytes] = []
            at = self._log.at
            for data, sha, like in bodies if self._keeps_bodies else ():
                if (put := self.blobs.put(data, sha, at, like)) is not None:
                    record, new = put
                    blobs.append(line(BLOB, b"{}", canonical(record)))
                    new_bytes.append(new)
                    at += len(new)
            self._log.append(b"".join([*blobs, events]), new_bytes)
        except BaseException as error:
            self._undo(error)
            raise
        if not self._is_large and sum(map(len, new_bytes)) > _LARGE:
            # A write-ahead log of the usual size would be checkpointed after each such commit.
            self._is_large = True
            with suppress(sqlite3.Error):  # The commit is on the tape; this is only for speed.
                creation.limit_log(self._db, _LARGE_CHECKPOINT)

    def payloads(self) -> list[bytes]:
        """Return the payloads of the exchanges in the file, in the order asked.

        Raises:
            TapeError: they cannot be read.
        """
        try:
            return numbered_payloads(LogReader(self._db, self.cipher).events())
        except sqlite3.Error as error:
            raise self.stopped(error) from error

    def finish(self, events: bytes, exchanges: int) -> None:
        """Write the last events, mark the tape as complete, and leave one plain file behind.

        If the disk fills after the end was written, the tape is complete, with its log beside it.

        Raises:
            TapeError: the end cannot be written, and the tape stays incomplete; or the file was
                removed or moved since.
        """
        try:
            with self._transaction():
                self._log.append(events, [])
                self._log.pack()
                self._db.execute("UPDATE meta SET value = 'complete' WHERE key = 'state'")
                if self.cipher is not None:
                    self._set(structure=canonical(Structure(exchanges)))
                mark = checksum.make_place(self._db)
            is_folded = self._folded()
        finally:
            self._db.close()
        # SQLite continues to write to a file that was unlinked or renamed.
        if _identity(self.absolute) != self._identity:
            raise TapeError(
                f"tracefork: {self.path} was removed, moved or replaced while the recording was "
                "running. Record again."
            )
        if is_folded:
            checksum.write(self.absolute, mark)

    def leave(self) -> None:
        """Leave one plain file behind, marked as incomplete."""
        try:
            self._fold()
        finally:
            self._db.close()

    def close(self) -> None:
        """Leave the tape incomplete, with its log beside it."""
        self._db.close()

    def discard(self) -> None:
        """Delete the tape."""
        self._db.close()
        creation.discard(self.absolute)

    def stopped(self, error: Exception) -> TapeError:
        """Return the error that says why nothing more can be written."""
        disk = isinstance(error, (OSError, sqlite3.OperationalError))
        return (UnwritableError if disk else TapeError)(
            f"tracefork: recording to {self.path} stopped: {error}. "
            "Everything recorded until then is on the tape."
        )

    def _set(self, **values: str | bytes | None) -> None:
        """Write rows of `meta`, which readers read first."""
        rows = [(key, value) for key, value in values.items() if value is not None]
        try:
            self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            raise self.stopped(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            self._undo(error)
            raise

    def _undo(self, error: BaseException) -> None:
        """Assume that the last write failed: an error or an interrupt came in between.

        The agent may catch an interrupt and continue to record.
        """
        self.blobs.forget()
        self._log.break_off()
        if isinstance(error, sqlite3.Error):
            raise self.stopped(error) from error

    def _folded(self) -> bool:
        """Fold a complete tape; return False if the disk has no room for that."""
        try:
            self._fold()
        except UnwritableError:
            return False
        return True

    def _fold(self) -> None:
        """Move everything from the log into the one file."""
        self._trim()
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise self.stopped(error) from error
        # SQLite refuses this while another connection reads the tape. The log is empty by now.
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA journal_mode=DELETE")

    def _trim(self) -> None:
        """Give back the pages that packed rows left unused, unless they are few."""
        with suppress(sqlite3.Error):  # The tape is complete; this is only for size.
            free, pages = (
                self._db.execute(f"PRAGMA {name}_count").fetchone()[0]
                for name in ("freelist", "page")
            )
            if free * _WASTE > pages:
                # The rows are durable already, and no other folder needs to have room.
                self._db.execute("PRAGMA synchronous=NORMAL")
                self._db.execute("PRAGMA temp_store=MEMORY")
                self._db.execute("VACUUM")


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one at the same path; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
