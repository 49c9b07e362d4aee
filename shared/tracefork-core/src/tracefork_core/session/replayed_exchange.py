"""One exchange that is answered from the tape, each piece in its recorded turn."""

from __future__ import annotations

import asyncio
from asyncio import sleep
from collections.abc import Iterator
from itertools import accumulate, chain, repeat
from typing import ClassVar, Literal

from tracefork_core.errors import ReplayError, TapeError, TraceforkError
from tracefork_core.exchange.contract import Failure, Head
from tracefork_core.explaining import divergence
from tracefork_core.order.turnstile import StallError, Turnstile
from tracefork_core.session.reading import Progress
from tracefork_core.session.run_state import RunState
from tracefork_core.session.tape_source import Source
from tracefork_core.tape import Exchange
from tracefork_core.tape.event import ExchangeAside

_MOST_ROUNDS = 100  # A tape may claim any number.
_NOTHING = b"\0nothing"
"""Compared by identity: the tape holds no further piece, and no end."""


class ReplayedExchange:
    """The replaying side of one exchange. Its body can be read once."""

    is_live: ClassVar[Literal[False]] = False

    def __init__(
        self,
        state: RunState,
        source: Source,
        turnstile: Turnstile,
        exchange: Exchange,
        progress: Progress | None = None,
    ) -> None:
        self._state = state
        self._source = source
        self._turnstile = turnstile
        self._exchange = exchange
        self._progress = progress
        self._turns = _expand(exchange.aside.turns)
        self._moments = _moments(exchange.aside)
        # A wait now is never shorter than when it was recorded.
        self._patience = (exchange.aside.took or 0) / 1e9
        self._chunks: Iterator[bytes] = iter(())
        self._over = False
        self._has_head = False
        self._chunks_left = len([size for size in exchange.aside.sizes if size])
        failure = exchange.failure
        self._failure = Failure(failure.kind, failure.message) if failure else None

    @property
    def n(self) -> int:
        """The number of the exchange on the tape."""
        return self._exchange.n

    @property
    def has_chunks(self) -> bool:
        """Whether the tape holds chunks of the body that were not given yet."""
        return self._chunks_left > 0

    @property
    def was_left(self) -> bool:
        """Whether the recorded agent stopped reading here, before the end of the body."""
        return self._exchange.end in ("abandoned", "cancelled") and not self.has_chunks

    def masked(self, text: str) -> str:
        """Return a text as the tape would hold it."""
        return self._state.masking.text(text)

    def receive_head(self) -> Head | Failure:
        self._wait()
        return self._head() or self._nothing_comes()

    async def areceive_head(self) -> Head | Failure:
        await self._await()
        return self._head() or await self._nothing_comes_async()

    def receive_chunk(self) -> bytes | Failure | None:
        while not self._over:
            self._wait()
            if (piece := self._next()) is _NOTHING:
                return self._nothing_comes()
            if piece != b"":  # Masked as a whole. Some clients take an empty piece for the end.
                return piece
        return None

    async def areceive_chunk(self) -> bytes | Failure | None:
        while not self._over:
            await self._await()
            if (piece := self._next()) is _NOTHING:
                return await self._nothing_comes_async()
            if piece != b"":
                return piece
        return None

    def close(self) -> None:
        self._over = True
        self._turnstile.give_up(self._turns)

    def _head(self) -> Head | Failure | None:
        exchange = self._exchange
        if exchange.status is None:
            return self._fail()
        self._has_head = True
        if self._progress is not None:
            self._progress.head()
        try:
            self._chunks = iter(exchange.chunks)
        except TapeError as damage:
            raise self._state.poison_with(damage) from damage.__cause__
        return Head(
            exchange.status,
            exchange.reason,
            tuple(exchange.response_headers),
            exchange.aside.http_version,
        )

    def _next(self) -> bytes | Failure | None:
        chunk = next(self._chunks, None)
        if chunk is not None:
            self._chunks_left -= bool(chunk)
            if self._progress is not None:
                self._progress.chunk(chunk)
            return chunk
        if self._exchange.end == "eof":
            self._over = True
            return None
        return self._fail() or _NOTHING

    def _fail(self) -> Failure | None:
        self._over = self._failure is not None
        if self._over and self._progress is not None:
            self._progress.failed()
        return self._failure

    def _nothing_comes(self) -> Failure:
        """Wait as long as the recorded agent waited for nothing, and raise."""
        if self._is_cut_off():
            self._wait()
        elif self._exchange.end == "open":
            self._turnstile.wait_for_end(self._patience)
        raise self._unanswered()

    async def _nothing_comes_async(self) -> Failure:
        """Wait until the agent gives up, as it did when this was recorded, or raise."""
        if self._is_cut_off():
            await self._await()
        elif self._exchange.end in ("open", "cancelled"):
            try:
                await self._turnstile.await_end(self._patience)
            except asyncio.CancelledError:
                await self._close_connection()
                raise
        raise self._unanswered()

    def _is_cut_off(self) -> bool:
        """Return whether the tape is cut off here. If so, the next turn comes after all others."""
        if self._exchange.end != "open" or not self._source.tape.is_cut_off:
            return False
        self._turns = iter([self._turnstile.last_turn(self._exchange.n)])
        return True

    def _unanswered(self) -> TraceforkError:
        """Poison the session: the agent reads more of this exchange than the tape holds."""
        exchange, tape = self._exchange, self._source.tape
        if exchange.end != "open" or not tape.is_cut_off:
            return self._state.diverge(divergence.read_further(tape, exchange))
        return self._state.poison_with(ReplayError(divergence.cut_off(tape, exchange)))

    def _stalled(self, stall: StallError) -> TraceforkError:
        """Poison the session: the recorded order cannot be reached."""
        tape = self._source.tape
        missing = tape.exchanges[stall.owner]
        asked = self._source.was_asked(missing.n)
        return self._state.diverge(
            divergence.stalled(tape, self._exchange, missing, stall.seconds, asked=asked)
        )

    def _wait(self) -> None:
        turn = next(self._turns, None)
        if turn is not None:
            moment = next(self._moments)
            try:
                self._turnstile.wait(turn, self._exchange.n, self._patience, moment)
            except BaseException:
                self._put_back(turn, moment)
                self.close()
                raise
        self._state.check()

    async def _await(self) -> None:
        turn = next(self._turns, None)
        if turn is not None:
            moment = next(self._moments)
            try:
                await self._turnstile.await_turn(turn, self._exchange.n, self._patience, moment)
            except StallError as stalled:
                raise self._stalled(stalled) from None
            except BaseException as error:
                self._put_back(turn, moment)
                if not self._has_head:  # A body can still be read after a read was cancelled.
                    self.close()
                if isinstance(error, asyncio.CancelledError):
                    await self._close_connection()
                raise
        self._state.check()

    async def _close_connection(self) -> None:
        """Let as many rounds of the event loop pass as closing the connection took."""
        for _ in range(min(self._exchange.aside.rounds, _MOST_ROUNDS)):
            await sleep(0)

    def _put_back(self, turn: int, moment: int) -> None:
        self._turns = chain((turn,), self._turns)
        self._moments = chain((moment,), self._moments)


def _moments(aside: ExchangeAside) -> Iterator[int]:
    """Return when each delivery arrived, in the time of the recording."""
    ended = aside.started + (aside.took or 0)
    if aside.pace:
        arrived = [aside.started + after * 1_000_000 for after in accumulate(aside.pace)]
    else:
        arrived = [aside.started + (aside.first_byte or aside.took or 0)]
    return chain(arrived, repeat(ended))


def _expand(runs: list[list[int]]) -> Iterator[int]:
    return chain.from_iterable([range(first, first + count) for first, count in runs])
