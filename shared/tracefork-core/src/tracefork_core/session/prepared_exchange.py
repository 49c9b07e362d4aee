"""An answer that is known before it is asked for, put on a branch as if it had come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from tracefork_core.exchange.contract import Failure, Head
from tracefork_core.session.interventions import Given
from tracefork_core.session.live_exchange import LiveExchange
from tracefork_core.tape import Exchange


def recorded_answer(exchange: Exchange) -> Given:
    """Return what came back when an exchange was recorded, as far as it was read."""
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
    """Hands on a prepared answer; what is handed on goes onto the tape first."""

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
