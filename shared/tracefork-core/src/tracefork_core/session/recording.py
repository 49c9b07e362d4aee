"""One exchange that happens for real and goes onto the tape, piece by piece."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tracefork_core.exchange.contract import Failure, Head
from tracefork_core.session.matching import Form
from tracefork_core.tape.event import (
    ExchangeAside,
    ExchangePayload,
    FailureRecord,
    ResponseRecord,
)

if TYPE_CHECKING:
    from tracefork_core.session.session import Session

CLOCK_HEADERS = frozenset({"date"})
"""Response headers whose value is a clock reading: kept beside the digest, not under it."""
_NO_BODY = frozenset({204, 304})


class LiveExchange:
    """The recording side of one exchange. Every piece is on the tape before the agent sees it."""

    def __init__(self, session: Session, n: int, form: Form, aside: ExchangeAside) -> None:
        self._session = session
        self._n = n
        self._form = form
        self._aside = aside
        self._began = aside.started
        self._response: ResponseRecord | None = None
        self._pieces: list[bytes] = []
        self._missing: int | None = None
        self.ended = False
        session.write(lambda sink: sink.begin(self._payload(), aside, form.body))

    def head(self, head: Head) -> None:
        self._turn()
        aside = self._aside
        aside.first_byte = self._session.wall_ns() - self._began
        aside.http_version = head.http_version
        headers: list[tuple[str, str | None]] = []
        for name, value in head.headers:
            if name.lower() in CLOCK_HEADERS:
                aside.received[name.lower()] = value
                headers.append((name, None))
            else:
                headers.append((name, value))
        self._response = ResponseRecord(head.status, head.reason, headers, body="")
        self._missing = self._declared_length(head)
        if self._missing is None:
            self._session.write(lambda sink: sink.head(self._payload(), aside))

    def chunk(self, data: bytes) -> None:
        if self.ended:
            return
        self._turn()
        self._pieces.append(data)
        self._aside.sizes.append(len(data))
        if self._missing is not None:
            self._missing -= len(data)
            if self._missing <= 0:
                self.end()  # The last byte is here, before the agent has it.
                return
        i = len(self._pieces) - 1
        self._session.write(lambda sink: sink.chunk(self._n, i, data))

    def end(self) -> None:
        if not self.ended:
            self._turn()
            self._finish("eof")

    def abandon(self) -> None:
        self._finish("abandoned")

    def fail(self, failure: Failure) -> None:
        if not self.ended:
            self._turn()
            self._finish("failed", FailureRecord(failure.kind, failure.message))

    def cancel(self) -> None:
        self._finish("cancelled")

    def _finish(self, end: str, failure: FailureRecord | None = None) -> None:
        if self.ended:
            return
        self.ended = True
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces = []
        self._aside.end = end
        self._aside.took = self._session.wall_ns() - self._began
        payload = self._payload(hashlib.sha256(body).hexdigest(), failure)
        self._session.write(lambda sink: sink.end(payload, self._aside, body))
        self._session.forget(self._n)

    def _payload(self, body: str = "", failure: FailureRecord | None = None) -> ExchangePayload:
        response = self._response
        if response is not None:
            response = ResponseRecord(response.status, response.reason, response.headers, body)
        return ExchangePayload(self._n, self._form.record, response, failure)

    def _turn(self) -> None:
        """Take the next turn: the place of this delivery among all of the run."""
        turn = self._session.next_turn()
        turns = self._aside.turns
        if turns and sum(turns[-1]) == turn:
            turns[-1][1] += 1
        else:
            turns.append([turn, 1])

    def _declared_length(self, head: Head) -> int | None:
        """Return how many bytes the body will have, where the head says so in plain terms."""
        if self._form.record.method == "HEAD" or head.status in _NO_BODY:
            return None
        length = None
        for name, value in head.headers:
            match name.lower():
                case "content-length" if value.isdigit():
                    length = int(value)
                case "content-encoding" | "transfer-encoding":
                    return None
        return length or None
