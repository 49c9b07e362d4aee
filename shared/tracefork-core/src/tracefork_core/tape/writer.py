"""Write a tape while the agent runs: nothing that the agent has seen is lost.

What is in flight goes to the journal, which survives the death of the process. The end of each
exchange is committed to the tape with an fsync before the agent sees that end, so it survives a
power cut.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from tracefork_core.patching.real_clock import monotonic_ns
from tracefork_core.tape.blobs import likes
from tracefork_core.tape.branches import Origin, parent_name
from tracefork_core.tape.digest import canonical, chain
from tracefork_core.tape.event import (
    ENVIRONMENT,
    EXCHANGE,
    RECEIPT,
    Environment,
    ExchangeAside,
    ExchangePayload,
    Receipt,
    line,
)
from tracefork_core.tape.file import Body, TapeFile
from tracefork_core.tape.held import HeldFile, NoJournal
from tracefork_core.tape.journal import Journal
from tracefork_core.tape.reader import Tape
from tracefork_core.tape.schema import Mode
from tracefork_core.tape.sealing import Key

P = ParamSpec("P")
R = TypeVar("R")

_NOTHING = b"{}"
_LIKELY = 8
"""The last exchanges of a parent, whose bodies are likely bases for a branch's first ones."""


class TapeWriter:
    """The one writer of one tape. Safe to call from any thread.

    A sealed tape has a `key`. A branch shares the exchanges of its `parent` before number `at`.
    With `held`, nothing is written before `close`.
    """

    def __init__(
        self,
        path: Path,
        environment: Environment,
        *,
        overwrite: bool = False,
        mode: Mode = "safe",
        key: Key | None = None,
        parent: Tape | None = None,
        at: int = 0,
        held: HeldFile | None = None,
    ) -> None:
        before = parent.exchanges[:at] if parent else []
        likely = [(exchange.request_body, exchange) for exchange in before[-_LIKELY:]]
        self.path = path
        self._before = [exchange.canonical for exchange in before]
        origin = None
        if parent is not None:
            origin = Origin(parent_name(parent.path), at, chain(self._before), parent.needs)
        self._file: TapeFile | HeldFile = held or TapeFile(
            path, overwrite=overwrite, mode=mode, key=key, origin=origin
        )
        self._file.blobs.share(parent.blobs if parent else ())
        for body, exchange in likely:
            like, _ = likes(exchange.request, exchange.lane)
            self._file.blobs.expect(body, exchange.request.body, like)
        self._keeps_bodies = mode != "metadata"
        self._lock = threading.RLock()
        self._waiting: list[bytes] = []
        self._asked: dict[int, bytes] = {}
        self._began = monotonic_ns()
        self.note(ENVIRONMENT, aside=environment)
        try:
            self._journal: Journal | NoJournal = (
                NoJournal()
                if held
                else self._journalled(Journal, self._file.absolute, self._file.cipher)
            )
            self._commit()
        except BaseException:
            self._file.discard()  # Nothing was recorded, so nothing is left behind.
            raise

    def note(self, kind: str, *, payload: object = None, aside: object = None) -> None:
        """Add an event to the next commit, without waiting for it."""
        payload_json = _NOTHING if payload is None else canonical(payload)
        aside_json = _NOTHING if aside is None else canonical(aside)
        with self._lock:
            self._waiting.append(line(kind, payload_json, aside_json))

    def keep(self, kind: str, aside: object, bodies: Sequence[Body]) -> None:
        """Commit an event with the bodies that it names."""
        with self._lock:
            self._commit(line(kind, _NOTHING, canonical(aside)), bodies)

    def begin(self, payload: ExchangePayload, aside: ExchangeAside, body: bytes) -> None:
        """Write a request to the journal before it leaves."""
        if not self._keeps_bodies:
            body = b""
        with self._lock:
            self._asked[payload.n] = body
            self._journalled(self._journal.begin, payload, aside, body)

    def head(self, payload: ExchangePayload, aside: ExchangeAside) -> None:
        """Write the head of a response to the journal before the agent sees it."""
        with self._lock:
            self._journalled(self._journal.head, payload, aside)

    def chunk(self, n: int, turn: int, data: bytes) -> None:
        """Write a chunk to the journal before the agent sees it."""
        with self._lock:
            self._journalled(self._journal.chunk, n, turn, data if self._keeps_bodies else b"")

    def end(self, payload: ExchangePayload, aside: ExchangeAside, body: bytes) -> None:
        """Commit a finished exchange to the tape."""
        payload_json = canonical(payload)
        asked, answered = likes(payload.request, aside.lane)
        with self._lock:
            bodies = [(self._asked.get(payload.n, b""), payload.request.body, asked)]
            if payload.response is not None:
                bodies.append((body, payload.response.body, answered))
            self._commit(line(EXCHANGE, payload_json, canonical(aside)), bodies)
            self._asked.pop(payload.n, None)
            self._journalled(self._journal.end, payload.n)

    def close(self, receipt: Receipt) -> Receipt:
        """Write the receipt with its digest and leave one plain file behind.

        Raises:
            TapeError: the end cannot be written, and the tape stays incomplete; or the file was
                removed or moved since.
        """
        with self._lock:
            remove = False
            try:
                self._commit()  # Write what waits, so that the digest covers it.
                payloads = [*self._before, *self._file.payloads()]
                receipt = msgspec.structs.replace(
                    receipt,
                    digest=chain(payloads),
                    exchanges=len(payloads),
                    took=receipt.took or monotonic_ns() - self._began,
                )
                self._file.finish(line(RECEIPT, _NOTHING, canonical(receipt)), len(payloads))
                remove = True
            finally:
                self._file.close()
                self._journal.close(remove=remove)
        return receipt

    def abort(self) -> None:
        """Leave the tape incomplete."""
        with self._lock:
            self._file.close()
            self._journal.close(remove=False)

    def discard(self) -> None:
        """Delete the tape."""
        with self._lock:
            self._journal.close(remove=False)
            self._file.discard()

    def _commit(self, event: bytes = b"", bodies: Sequence[Body] = ()) -> None:
        """Write the waiting events, and an event with its bodies."""
        waiting = len(self._waiting)
        self._file.commit(b"".join([*self._waiting[:waiting], event]), bodies)
        del self._waiting[:waiting]

    def _journalled(self, write: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function that writes to the journal; if it cannot, the recording stops."""
        try:
            return write(*args, **kwargs)
        except OSError as error:
            raise self._file.stopped(error) from error
