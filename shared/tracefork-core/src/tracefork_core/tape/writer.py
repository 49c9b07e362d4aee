"""Write a tape while the agent runs: nothing that the agent has seen is lost.

Two strengths of commit, both atomic. A *swift* commit (synchronous=NORMAL) survives the death of
the process: it is used for what is in flight (the request, each chunk before it is handed on). A
*durable* commit (synchronous=FULL: one fsync of the log, which also carries the swift ones before
it) survives a power cut: it is used for the end of each exchange, before the agent sees that end.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape import schema
from tracefork_core.tape.blobs import Blobs
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
)

_NOTHING = b"{}"


class _Numbered(msgspec.Struct):
    n: int


_numbered = msgspec.json.Decoder(_Numbered).decode


class TapeWriter:
    """The one writer of one tape. Safe to call from any thread."""

    def __init__(self, path: Path, environment: Environment, *, overwrite: bool = False) -> None:
        self.path = path
        self._db = schema.create(path, overwrite=overwrite)
        self._file = path.absolute()
        self._identity = _identity(self._file)
        self._blobs = Blobs(self._db)
        self._lock = threading.RLock()
        self._waiting: list[tuple[str, bytes, bytes]] = []
        self._sync = "FULL"
        self._chunked: set[int] = set()
        self._began = time.monotonic_ns()
        self.note(ENVIRONMENT, aside=environment)
        with self._commit(durable=True):
            pass

    def note(self, kind: str, *, payload: object = None, aside: object = None) -> None:
        """Add an event with the next commit; nobody waits for it."""
        payload_json = _NOTHING if payload is None else canonical(payload)
        aside_json = _NOTHING if aside is None else canonical(aside)
        with self._lock:
            self._waiting.append((kind, payload_json, aside_json))

    def begin(self, payload: ExchangePayload, aside: ExchangeAside, body: bytes) -> None:
        """Put a request on the tape before it leaves."""
        flight = (payload.n, canonical(payload), canonical(aside))
        with self._commit(durable=False):
            self._blobs.put(body, payload.request.body)
            self._db.execute("INSERT INTO flights VALUES (?, ?, ?)", flight)

    def head(self, payload: ExchangePayload, aside: ExchangeAside) -> None:
        """Put the head of a response on the tape before the agent sees it."""
        head = (canonical(payload), canonical(aside), payload.n)
        with self._commit(durable=False):
            self._db.execute("UPDATE flights SET payload = ?, aside = ? WHERE n = ?", head)

    def chunk(self, n: int, turn: int, data: bytes) -> None:
        """Put a chunk on the tape before the agent sees it."""
        with self._commit(durable=False):
            self._db.execute("INSERT INTO flight_chunks VALUES (?, ?, ?)", (n, turn, data))
            self._chunked.add(n)

    def end(self, payload: ExchangePayload, aside: ExchangeAside, body: bytes) -> None:
        """Make an exchange whole and durable."""
        event = (EXCHANGE, canonical(payload), canonical(aside))
        # What the session leaves open is made durable by its own end.
        with self._commit(durable=aside.end != "open"):
            if payload.response is not None:
                self._blobs.put(body, payload.response.body)
            self._db.execute("DELETE FROM flights WHERE n = ?", (payload.n,))
            if payload.n in self._chunked:
                self._db.execute("DELETE FROM flight_chunks WHERE n = ?", (payload.n,))
            self._insert(*event)

    def close(self, receipt: Receipt) -> Receipt:
        """Write the receipt with its digest and leave one plain file behind.

        Raises:
            TapeError: the end cannot be written; the tape stays as it is, incomplete. Or the file
                was removed or moved since.
        """
        with self._lock:
            try:
                with self._commit(durable=False):
                    pass  # Whatever waits, so that the digest covers it.
                payloads = self._payloads()
                receipt = msgspec.structs.replace(
                    receipt,
                    digest=chain(payloads),
                    exchanges=len(payloads),
                    took=time.monotonic_ns() - self._began,
                )
                self.note(RECEIPT, aside=receipt)
                with self._commit(durable=True):
                    self._db.execute("UPDATE meta SET value = 'complete' WHERE key = 'state'")
                self._fold()
            except sqlite3.Error as error:
                raise self._stopped(error) from error
            finally:
                self._db.close()
            # SQLite goes on writing to a file that has lost its name.
            if _identity(self._file) != self._identity:
                raise TapeError(
                    f"tracefork: {self.path} is not there any more: it was removed, moved or "
                    "replaced while it was recorded to."
                )
        return receipt

    def abort(self) -> None:
        """Leave the tape as it is, incomplete."""
        with self._lock:
            self._db.close()

    def _payloads(self) -> list[bytes]:
        rows = self._db.execute("SELECT payload FROM events WHERE kind = ?", (EXCHANGE,))
        return sorted((payload for (payload,) in rows), key=lambda payload: _numbered(payload).n)

    def _fold(self) -> None:
        """Bring everything into the one file, and give back what chunks in flight took."""
        # `execute` would stop after the first page.
        self._db.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
        # Refused while somebody reads the tape. The log is empty by now: nothing depends on it.
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA journal_mode=DELETE")

    def _insert(self, kind: str, payload: bytes, aside: bytes) -> None:
        self._db.execute(
            "INSERT INTO events (kind, payload, aside) VALUES (?, ?, ?)", (kind, payload, aside)
        )

    @contextmanager
    def _commit(self, *, durable: bool) -> Iterator[None]:
        strength = "FULL" if durable else "NORMAL"
        with self._lock:
            waiting = list(self._waiting)
            try:
                if strength != self._sync:
                    self._db.execute(f"PRAGMA synchronous={strength}")
                    self._sync = strength
                self._db.execute("BEGIN IMMEDIATE")
                for event in waiting:
                    self._insert(*event)
                yield
                self._db.execute("COMMIT")
                del self._waiting[: len(waiting)]
            except BaseException as error:
                # Also for an interrupt: the agent may catch it and go on recording.
                self._roll_back()
                if isinstance(error, sqlite3.Error):
                    raise self._stopped(error) from error
                raise

    def _roll_back(self) -> None:
        self._blobs.forget()
        with suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")

    def _stopped(self, error: sqlite3.Error) -> TapeError:
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
