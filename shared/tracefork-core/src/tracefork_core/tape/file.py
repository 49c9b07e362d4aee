"""The file of a tape while it is written: commits of events and bodies, and its end."""

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
"""One page in so many may lie idle in a tape that is closed."""

Body = tuple[bytes, str, Like]
"""A body, its address, and what names the bodies it is likely to be like."""


class TapeFile:
    """One tape that is written by one process. Not safe to use from two threads at once."""

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
        """The path, wherever the current folder goes."""
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
            TapeError: they cannot be written; nothing of them is on the tape.
        """
        fresh: list[bytes] = []
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
                    fresh.append(new)
                    at += len(new)
            self._log.append(b"".join([*blobs, events]), fresh)
        except BaseException as error:
            self._undo(error)
            raise
        if not self._is_large and sum(map(len, fresh)) > _LARGE:
            # A log as small as a small tape's would be folded in after each of these.
            self._is_large = True
            with suppress(sqlite3.Error):  # It is on the tape; this is for speed alone.
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
        """Write the last events, call the tape complete, and leave one plain file behind.

        Raises:
            TapeError: the end cannot be written: the tape stays as it is, incomplete, or complete
                with its log beside it. Or the file was removed or moved since.
        """
        try:
            with self._transaction():
                self._log.append(events, [])
                self._log.pack()
                self._db.execute("UPDATE meta SET value = 'complete' WHERE key = 'state'")
                if self.cipher is not None:
                    self._set(structure=canonical(Structure(exchanges)))
                mark = checksum.make_place(self._db)
            self._fold()
        finally:
            self._db.close()
        # SQLite goes on writing to a file that has lost its name.
        if _identity(self.absolute) != self._identity:
            raise TapeError(
                f"tracefork: {self.path} is not there any more: it was removed, moved or "
                "replaced while it was recorded to."
            )
        checksum.write(self.absolute, mark)

    def leave(self) -> None:
        """Leave one plain file behind, incomplete."""
        try:
            self._fold()
        finally:
            self._db.close()

    def close(self) -> None:
        """Leave the tape as it is, incomplete, its log beside it."""
        self._db.close()

    def discard(self) -> None:
        """Leave nothing behind."""
        self._db.close()
        creation.discard(self.absolute)

    def stopped(self, error: Exception) -> TapeError:
        """Say that nothing more can be written, and why."""
        disk = isinstance(error, (OSError, sqlite3.OperationalError))
        return (UnwritableError if disk else TapeError)(
            f"tracefork: recording to {self.path} stopped: {error}. "
            "What was recorded until then is kept."
        )

    def _set(self, **values: str | bytes | None) -> None:
        """Write what a reader must know before it reads anything else."""
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
        """Count on nothing that was written last: an error, or an interrupt, came in between.

        The agent may catch an interrupt and go on recording.
        """
        self.blobs.forget()
        self._log.break_off()
        if isinstance(error, sqlite3.Error):
            raise self.stopped(error) from error

    def _fold(self) -> None:
        """Bring everything into the one file."""
        self._trim()
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise self.stopped(error) from error
        # Refused while somebody reads the tape. The log is empty by now: nothing depends on it.
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA journal_mode=DELETE")

    def _trim(self) -> None:
        """Give back the pages that packed rows have left; of a large tape they are few."""
        with suppress(sqlite3.Error):  # It is all there; this is for size alone.
            free, pages = (
                self._db.execute(f"PRAGMA {name}_count").fetchone()[0]
                for name in ("freelist", "page")
            )
            if free * _WASTE > pages:
                # What is durable need not be made so again, and no other folder must have room.
                self._db.execute("PRAGMA synchronous=NORMAL")
                self._db.execute("PRAGMA temp_store=MEMORY")
                self._db.execute("VACUUM")


def _identity(path: Path) -> tuple[int, int] | None:
    """Tell a file from another one of its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
