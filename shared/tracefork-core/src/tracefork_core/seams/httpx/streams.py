"""The streams with which the seam of httpx and httpx2 replaces theirs.

*Held*: a request body that had to be read to be compared, sent in the pieces that it came in.
*Live*: a response body that records what the agent reads. *Replayed*: a body from the tape.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Any

from tracefork_core.exchange.contract import Failure, Live, Recorded
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.seams.cancelling import Cancellable

GIVEN_UP = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, SystemExit)

ToFailure = Callable[[BaseException], Failure]
ToException = Callable[[Failure, Any], Exception]


def held_streams(lib: ModuleType) -> tuple[type, type]:
    """Return the sync and async class of held streams."""

    class HeldSyncStream(lib.SyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any, pieces: list[bytes]) -> None:
            self._inner = inner
            self._pieces: list[bytes] | None = pieces

        def __iter__(self) -> Iterator[bytes]:
            # The original stream answers a second read, and may refuse it.
            pieces, self._pieces = self._pieces, None
            yield from self._inner if pieces is None else pieces

    class HeldAsyncStream(lib.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any, pieces: list[bytes]) -> None:
            self._inner = inner
            self._pieces: list[bytes] | None = pieces

        async def __aiter__(self) -> AsyncIterator[bytes]:
            pieces, self._pieces = self._pieces, None
            if pieces is None:
                async for piece in self._inner:
                    yield piece
            for piece in pieces or ():
                yield piece

    return HeldSyncStream, HeldAsyncStream


def live_streams(lib: ModuleType, failure: ToFailure) -> tuple[type, type]:
    """Return the sync and async class of live streams."""

    class LiveSyncStream(lib.SyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any, live: Live) -> None:
            self._inner = inner
            self._live = live

        def __iter__(self) -> Iterator[bytes]:
            pieces = iter(self._inner)
            try:
                while True:
                    try:
                        with crossing_seam():
                            chunk = next(pieces)
                    except StopIteration:
                        break
                    self._live.chunk(chunk)
                    yield chunk
            except GeneratorExit:
                raise  # The agent stopped reading between two chunks; `close` records that.
            except GIVEN_UP:
                self._live.cancel()
                raise
            except Exception as error:
                self._live.fail(failure(error))
                raise
            self._live.end()

        def close(self) -> None:
            self._live.abandon()
            with crossing_seam():
                self._inner.close()

    class LiveAsyncStream(lib.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any, live: Live) -> None:
            self._inner = inner
            self._live = live

        async def __aiter__(self) -> AsyncIterator[bytes]:
            pieces, rounds = aiter(self._inner), 0
            try:
                while True:
                    reading = Cancellable(anext(pieces))
                    try:
                        with crossing_seam():
                            chunk = await reading
                    except StopAsyncIteration:
                        break
                    finally:
                        rounds = reading.rounds
                    await self._live.quiet()
                    self._live.chunk(chunk)
                    yield chunk
                await self._live.quiet()
            except GeneratorExit:
                raise
            except GIVEN_UP:
                self._live.cancel(rounds)
                raise
            except Exception as error:
                await self._live.quiet()
                self._live.fail(failure(error))
                raise
            self._live.end()

        async def aclose(self) -> None:
            self._live.abandon()
            with crossing_seam():
                await self._inner.aclose()

    return LiveSyncStream, LiveAsyncStream


def replayed_streams(lib: ModuleType, exception: ToException) -> tuple[type, type]:
    """Return the sync and async class of replayed streams."""

    # Stateful on purpose: the openai SDK iterates over a stream again to drain it.
    class ReplayedSyncStream(lib.SyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, answer: Recorded, request: Any) -> None:
            self._answer = answer
            self._request = request

        def __iter__(self) -> Iterator[bytes]:
            while (piece := self._answer.receive_chunk()) is not None:
                if isinstance(piece, Failure):
                    raise exception(piece, self._request)
                yield piece

        def close(self) -> None:
            self._answer.close()

    class ReplayedAsyncStream(lib.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, answer: Recorded, request: Any) -> None:
            self._answer = answer
            self._request = request

        async def __aiter__(self) -> AsyncIterator[bytes]:
            while (piece := await self._answer.areceive_chunk()) is not None:
                if isinstance(piece, Failure):
                    raise exception(piece, self._request)
                yield piece

        async def aclose(self) -> None:
            self._answer.close()

    return ReplayedSyncStream, ReplayedAsyncStream
