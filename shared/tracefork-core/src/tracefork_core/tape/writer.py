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
from contextlib import contextmanager
from pathlib import Path

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


class TapeWriter:
    """The one writer of one tape. Safe to call from any thread."""

    def __init__(self, path: Path, environment: Environment, *, overwrite: bool = False) -> None:
        self.path = path
        self._db = schema.create(path, overwrite=overwrite)
        self._blobs = Blobs(self._db)
        self._lock = threading.RLock()
        self._waiting: list[tuple[str, bytes, bytes]] = []
        self._sync = "FULL"
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
        with self._commit(durable=False):
            self._blobs.put(body, aside.body or payload.request.body)
            self._db.execute(
                "INSERT INTO flights VALUES (?, ?, ?)",
                (payload.n, canonical(payload), canonical(aside)),
            )

    def head(self, payload: ExchangePayload, aside: ExchangeAside) -> None:
        """Put the head of a response on the tape before the agent sees it."""
        with self._commit(durable=False):
            self._db.execute(
                "UPDATE flights SET payload = ?, aside = ? WHERE n = ?",
                (canonical(payload), canonical(aside), payload.n),
            )

    def chunk(self, n: int, i: int, data: bytes) -> None:
        """Put a chunk on the tape before the agent sees it."""
        with self._commit(durable=False):
            self._db.execute("INSERT INTO flight_chunks VALUES (?, ?, ?)", (n, i, data))

    def end(self, payload: ExchangePayload, aside: ExchangeAside, body: bytes) -> None:
        """Make an exchange whole and durable."""
        with self._commit(durable=True):
            if payload.response is not None:
                self._blobs.put(body, payload.response.body)
            self._db.execute("DELETE FROM flights WHERE n = ?", (payload.n,))
            self._db.execute("DELETE FROM flight_chunks WHERE n = ?", (payload.n,))
            self._insert(EXCHANGE, canonical(payload), canonical(aside))

    def close(self, receipt: Receipt) -> Receipt:
        """Write the receipt with its digest and leave one plain file behind."""
        with self._lock:
            payloads = [
                payload
                for (payload,) in self._db.execute(
                    "SELECT payload FROM events WHERE kind = ? "
                    "ORDER BY json_extract(CAST(payload AS TEXT), '$.n')",
                    (EXCHANGE,),
                )
            ]
            receipt = Receipt(
                digest=chain(payloads),
                exchanges=len(payloads),
                took=time.monotonic_ns() - self._began,
                connections=receipt.connections,
                crossed=receipt.crossed,
                strays=receipt.strays,
                subprocesses=receipt.subprocesses,
                outcome=receipt.outcome,
            )
            self.note(RECEIPT, aside=receipt)
            with self._commit(durable=True):
                self._db.execute("UPDATE meta SET value = 'complete' WHERE key = 'state'")
            try:
                self._db.execute("PRAGMA journal_mode=DELETE")
            finally:
                self._db.close()
        return receipt

    def abort(self) -> None:
        """Leave the tape as it is, incomplete."""
        with self._lock:
            self._db.close()

    def _insert(self, kind: str, payload: bytes, aside: bytes) -> None:
        self._db.execute(
            "INSERT INTO events (kind, payload, aside) VALUES (?, ?, ?)", (kind, payload, aside)
        )

    @contextmanager
    def _commit(self, *, durable: bool) -> Iterator[None]:
        strength = "FULL" if durable else "NORMAL"
        with self._lock:
            try:
                if strength != self._sync:
                    self._db.execute(f"PRAGMA synchronous={strength}")
                    self._sync = strength
                self._db.execute("BEGIN IMMEDIATE")
                waiting, self._waiting = self._waiting, []
                for event in waiting:
                    self._insert(*event)
                yield
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                raise TapeError(
                    f"tracefork: recording to {self.path} stopped: {error}. "
                    "What was recorded until then is kept."
                ) from error
