"""Write a tape while the agent runs: nothing that the agent has seen is lost.

What is in flight is written to the journal, which survives the death of the process. The end of
each exchange is committed to the tape with an fsync, before the agent sees that end: it survives a
power cut.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape import checksum, schema
from tracefork_core.tape.blobs import BLOB, BlobWriter, Like
from tracefork_core.tape.canonical import canonical
from tracefork_core.tape.digest import chain
from tracefork_core.tape.event import (
    ENVIRONMENT,
    EXCHANGE,
    RECEIPT,
    Environment,
    ExchangeAside,
    ExchangePayload,
    Receipt,
    line,
    numbered_payloads,
)
from tracefork_core.tape.journal import Journal
from tracefork_core.tape.log import LogReader, LogWriter

_NOTHING = b"{}"


class TapeWriter:
    """The one writer of one tape. Safe to call from any thread."""

    def __init__(self, path: Path, environment: Environment, *, overwrite: bool = False) -> None:
        self.path = path
        self._db = schema.create(path, overwrite=overwrite)
        self._file = path.absolute()
        self._identity = _identity(self._file)
        self._log = LogWriter(self._db)
        self._blobs = BlobWriter()
        self._journal = self._opened_journal()
        self._lock = threading.RLock()
        self._waiting: list[bytes] = []
        self._asked: dict[int, bytes] = {}
        self._began = time.monotonic_ns()
        self.note(ENVIRONMENT, aside=environment)
        with self._lock:
            self._commit([], [])

    def note(self, kind: str, *, payload: object = None, aside: object = None) -> None:
        """Add an event with the next commit; nobody waits for it."""
        payload_json = _NOTHING if payload is None else canonical(payload)
        aside_json = _NOTHING if aside is None else canonical(aside)
        with self._lock:
            self._waiting.append(line(kind, payload_json, aside_json))

    def begin(self, payload: ExchangePayload, aside: ExchangeAside, body: bytes) -> None:
        """Put a request down before it leaves."""
        with self._lock, self._journalling():
            self._asked[payload.n] = body
            self._journal.begin(payload.n, canonical(payload), canonical(aside), body)

    def head(self, payload: ExchangePayload, aside: ExchangeAside) -> None:
        """Put the head of a response down before the agent sees it."""
        with self._lock, self._journalling():
            self._journal.head(payload.n, canonical(payload), canonical(aside))

    def chunk(self, n: int, turn: int, data: bytes) -> None:
        """Put a chunk down before the agent sees it."""
        with self._lock, self._journalling():
            self._journal.chunk(n, turn, data)

    def end(self, payload: ExchangePayload, aside: ExchangeAside, body: bytes) -> None:
        """Make an exchange whole and durable."""
        payload_json = canonical(payload)
        endpoint = f"{payload.request.method} {urlsplit(payload.request.url).path}"
        bodies = [
            (self._asked.get(payload.n, b""), payload.request.body, (f"{endpoint} >", aside.lane))
        ]
        if payload.response is not None:
            bodies.append((body, payload.response.body, (f"{endpoint} <", aside.lane)))
        with self._lock:
            self._commit([line(EXCHANGE, payload_json, canonical(aside))], bodies)
            self._asked.pop(payload.n, None)
            with self._journalling():
                self._journal.end(payload.n)

    def close(self, receipt: Receipt) -> Receipt:
        """Write the receipt with its digest and leave one plain file behind.

        Raises:
            TapeError: the end cannot be written; the tape stays as it is, incomplete. Or the file
                was removed or moved since.
        """
        with self._lock:
            try:
                self._commit([], [])  # Whatever waits, so that the digest covers it.
                payloads = numbered_payloads(LogReader(self._db).events())
                receipt = msgspec.structs.replace(
                    receipt,
                    digest=chain(payloads),
                    exchanges=len(payloads),
                    took=time.monotonic_ns() - self._began,
                )
                self.note(RECEIPT, aside=receipt)
                mark = self._commit_end()
                self._fold()
            except sqlite3.Error as error:
                raise self._stopped(error) from error
            finally:
                self._db.close()
                self._journal.close(remove=True)
            # SQLite goes on writing to a file that has lost its name.
            if _identity(self._file) != self._identity:
                raise TapeError(
                    f"tracefork: {self.path} is not there any more: it was removed, moved or "
                    "replaced while it was recorded to."
                )
            checksum.write(self._file, mark)
        return receipt

    def abort(self) -> None:
        """Leave the tape as it is, incomplete."""
        with self._lock:
            self._db.close()
            self._journal.close(remove=False)

    def _commit(self, lines: list[bytes], bodies: list[tuple[bytes, str, Like]]) -> None:
        """Write what waits, new bodies and `lines`, in one durable transaction."""
        with self._transaction():
            waiting = len(self._waiting)
            fresh: list[bytes] = []
            at = self._log.at
            blobs: list[bytes] = []
            for data, sha, like in bodies:
                if (put := self._blobs.put(data, sha, at, like)) is not None:
                    record, new = put
                    blobs.append(line(BLOB, _NOTHING, canonical(record)))
                    fresh.append(new)
                    at += len(new)
            self._log.append(b"".join([*self._waiting[:waiting], *blobs, *lines]), fresh)
        del self._waiting[:waiting]

    def _commit_end(self) -> bytes:
        """Write what waits, pack what is not packed yet, and call the tape complete."""
        with self._transaction():
            self._log.append(b"".join(self._waiting), [])
            self._log.pack()
            self._db.execute("UPDATE meta SET value = 'complete' WHERE key = 'state'")
            return checksum.make_place(self._db)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException as error:
            # Also for an interrupt: the agent may catch it and go on recording.
            self._blobs.forget()
            self._log.break_off()
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise self._stopped(error) from error
            raise

    def _fold(self) -> None:
        """Bring everything into the one file, and give back what packed rows took."""
        # `execute` would stop after the first page.
        self._db.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
        # Refused while somebody reads the tape. The log is empty by now: nothing depends on it.
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA journal_mode=DELETE")

    def _opened_journal(self) -> Journal:
        try:
            return Journal(self._file)
        except OSError as error:
            self._db.close()
            raise self._stopped(error) from error

    @contextmanager
    def _journalling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._stopped(error) from error

    def _stopped(self, error: Exception) -> TapeError:
        return TapeError(
            f"tracefork: recording to {self.path} stopped: {error}. "
            "What was recorded until then is kept."
        )


def _identity(path: Path) -> tuple[int, int] | None:
    """Tell a file from another one of its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
