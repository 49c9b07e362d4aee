"""Answers that are known before a request is sent.

A `PreparedExchange` goes onto the branch of a fork as if it had been received. A `StandIn` goes
onto no tape: it answers a request that a replay neither sends nor needs to find on its tape.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar, Literal

from tracefork_core.exchange.contract import Failure, Head, Headers, Request
from tracefork_core.session.interventions import Given
from tracefork_core.session.live_exchange import LiveExchange
from tracefork_core.tape import Exchange


def recorded_answer(exchange: Exchange) -> Given:
    """Return the answer of a recorded exchange, as far as the agent read it."""
    failed = exchange.failure
    failure = Failure(failed.kind, failed.message) if failed else None
    if exchange.status is None:
        return Given(failure or Failure("ReadError", "the recorded exchange has no answer"))
    head = Head(
        exchange.status,
        exchange.reason,
        tuple(exchange.response_headers),
        exchange.aside.http_version,
    )
    return Given(head, tuple(exchange.chunks), failure)


class PreparedExchange:
    """Hands on a prepared answer, and puts each piece on the tape first."""

    is_live: ClassVar[Literal[False]] = False

    def __init__(self, given: Given, tape: LiveExchange) -> None:
        self._given = given
        self._tape = tape
        self._chunks: Iterator[bytes] = iter(given.chunks)
        self._over = False

    def receive_head(self) -> Head | Failure:
        return self._head()

    async def areceive_head(self) -> Head | Failure:
        await self._quiet()
        return self._head()

    def receive_chunk(self) -> bytes | Failure | None:
        return self._chunk()

    async def areceive_chunk(self) -> bytes | Failure | None:
        if not self._over:
            await self._quiet()
        return self._chunk()

    def close(self) -> None:
        if not self._over:
            self._over = True
            self._tape.abandon()

    async def _quiet(self) -> None:
        try:
            await self._tape.quiet()
        except BaseException:
            self._tape.cancel()
            raise

    def _head(self) -> Head | Failure:
        head = self._given.head
        if isinstance(head, Failure):
            self._over = True
            self._tape.fail(head)
        else:
            self._tape.head(head)
        return head

    def _chunk(self) -> bytes | Failure | None:
        if self._over:
            return None
        if (chunk := next(self._chunks, None)) is not None:
            self._tape.chunk(chunk)
            return chunk
        self._over = True
        if (failure := self._given.failure) is not None:
            self._tape.fail(failure)
            return failure
        self._tape.end()
        return None


def not_held(method: str, url: str) -> StandIn:
    """Return an error for a request about tokens that is not on the tape.

    It is a 400, because every SDK takes that for final and reports it to its caller.
    """
    message = (
        f"tracefork: {method} {url} asks about tokens and is not on the tape. Replay does not send "
        "it; the run continues without an answer."
    )
    error = {"type": "tracefork_not_held", "code": "tracefork", "message": message}
    document = {"type": "error", "error": error, "message": message}
    body = json.dumps(document).encode()
    headers = ("content-type", "application/json"), ("x-should-retry", "false")
    return StandIn(400, "Bad Request", headers, body)


def acknowledged(request: Request) -> StandIn:
    """Return the answer of a collector that accepted a whole report: an empty OTLP message."""
    kind = next((v for name, v in request.headers if name.lower() == "content-type"), "")
    body = b"{}" if "json" in kind else b""
    return StandIn(200, "OK", (("content-type", kind),), body)


class StandIn:
    """A whole response that no server sent."""

    is_live: ClassVar[Literal[False]] = False

    def __init__(self, status: int, reason: str, headers: Headers, body: bytes) -> None:
        length = ("content-length", str(len(body)))
        self._head = Head(status, reason, (*headers, length))
        self._body: bytes | None = body or None

    def receive_head(self) -> Head:
        return self._head

    async def areceive_head(self) -> Head:
        return self.receive_head()

    def receive_chunk(self) -> bytes | None:
        body, self._body = self._body, None
        return body

    async def areceive_chunk(self) -> bytes | None:
        return self.receive_chunk()

    def close(self) -> None:
        self._body = None
