"""One exchange that is answered from the tape, each piece in its recorded turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracefork_core.exchange.contract import Failure, Head
from tracefork_core.session.turns import Stalled

if TYPE_CHECKING:
    from tracefork_core.session.session import Session
    from tracefork_core.tape import Exchange


_PENDING = b"\0pending"
"""Told apart by identity: no piece ever comes, the recorded agent was cancelled while it waited."""


class ReplayedExchange:
    """The replaying side of one exchange; iterates its body once, however often it is asked."""

    def __init__(self, session: Session, exchange: Exchange) -> None:
        self._session = session
        self._exchange = exchange
        self._turns = _expand(exchange.aside.turns)
        self._chunks: Iterator[bytes] = iter(())
        self._over = False
        failure = exchange.failure
        self._failure = Failure(failure.kind, failure.message) if failure else None

    def receive_head(self) -> Head | Failure:
        self._wait()
        if self._exchange.payload.response is None:
            if self._failure is None:
                raise self._session.unanswered(self._exchange)
            return self._fail()
        return self._head()

    async def areceive_head(self) -> Head | Failure:
        await self._await()
        if self._exchange.payload.response is None:
            if self._failure is None:
                await self._until_cancelled()
            return self._fail()
        return self._head()

    def receive_chunk(self) -> bytes | Failure | None:
        if self._over:
            return None
        self._wait()
        if (piece := self._next()) is _PENDING:
            raise self._session.unanswered(self._exchange)
        return piece

    async def areceive_chunk(self) -> bytes | Failure | None:
        if self._over:
            return None
        await self._await()
        if (piece := self._next()) is _PENDING:
            await self._until_cancelled()
        return piece

    def close(self) -> None:
        self._over = True
        self._session.turnstile.give_up(self._turns)

    def _head(self) -> Head:
        exchange = self._exchange
        self._chunks = iter(exchange.chunks)
        assert exchange.status is not None
        return Head(
            exchange.status,
            exchange.reason,
            tuple(exchange.response_headers),
            exchange.aside.http_version,
        )

    def _next(self) -> bytes | Failure | None:
        chunk = next(self._chunks, None)
        if chunk is not None:
            return chunk
        if self._failure is not None:
            return self._fail()
        match self._exchange.end:
            case "eof":
                self._over = True
                return None
            case "cancelled":
                return _PENDING
            case _:
                raise self._session.unanswered(self._exchange)

    def _fail(self) -> Failure:
        assert self._failure is not None
        self._over = True
        return self._failure

    async def _until_cancelled(self) -> None:
        """Stay unanswered: when this was recorded, the agent gave up waiting here."""
        if self._exchange.end != "cancelled":
            raise self._session.unanswered(self._exchange)
        await asyncio.get_running_loop().create_future()

    def _wait(self) -> None:
        if (turn := next(self._turns, None)) is not None:
            try:
                self._session.turnstile.wait(turn, self._exchange.n)
            except Stalled as stalled:
                raise self._session.stalled(self._exchange, stalled.owner) from None

    async def _await(self) -> None:
        if (turn := next(self._turns, None)) is not None:
            try:
                await self._session.turnstile.await_turn(turn, self._exchange.n)
            except Stalled as stalled:
                raise self._session.stalled(self._exchange, stalled.owner) from None


def _expand(runs: list[list[int]]) -> Iterator[int]:
    return (first + i for first, count in runs for i in range(count))
