"""The stream from which an agent reads a response of aiohttp.

It is a subclass of aiohttp's stream that pulls a piece from its source when the agent wants more
than the stream holds. So a chunk is recorded when the agent gets it, in the task that gets it, and
each pull is one chunk: `iter_any` yields the same pieces at replay. So does `iter_chunks`, except
for an HTTP chunk that came in several reads, whose parts then count as whole chunks. The empty
piece that aiohttp adds if the end comes later than the last chunk is left out.

Sources yield the bytes of the wire; the reader decompresses them with aiohttp's own decoder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from tracefork_core.exchange.contract import Failure, Live, Recorded
from tracefork_core.seams.aiohttp.failures import Failures

GIVEN_UP = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, SystemExit)


class Piece(NamedTuple):
    """The result of one pull. `ends_chunk` is known only if the pull asked for chunks."""

    data: bytes
    ends_chunk: bool = False
    last: bool = False


class Source(Protocol):
    """The source of a reader's pieces."""

    async def pull(self, *, by_chunk: bool) -> Piece: ...

    def pull_nowait(self) -> Piece:
        """Return what has arrived, without waiting."""

    def arrived(self) -> bool:
        """Return whether the end has arrived, though perhaps not all was pulled."""

    def drained(self) -> bool:
        """Return whether nothing is left to pull; True records the end of the body."""

    def broken(self) -> BaseException | None:
        """Return the exception that every further pull raises; None if the body is intact."""

    def close(self, *error: BaseException) -> None:
        """Note that the agent stopped reading."""


class LiveSource:
    """Pulls from the stream that aiohttp fills, and records the pieces.

    A piece waits here for its turn among the deliveries. If the read is cancelled meanwhile, the
    next read gets the piece. If the body breaks off meanwhile, the data that arrived is kept;
    aiohttp would drop it as unread, but without tracefork the agent would have read it by then.
    """

    def __init__(self, raw: Any, live: Live | None, failures: Failures) -> None:
        self._raw = raw
        self._live = live
        self._failures = failures
        self._held: tuple[bytes, bool] | None = None
        self._broken_behind: BaseException | None = None
        self._gave_up = False
        self._between_chunks = False

    async def quiet(self) -> None:
        """Wait for this delivery's turn."""
        if self._live is None:
            return
        was_whole = self.broken() is None
        try:
            await self._live.quiet()
        finally:
            if was_whole and self.broken() is not None and self._raw._buffer:
                self._broken_behind, self._raw._exception = self.broken(), None

    async def pull(self, *, by_chunk: bool) -> Piece:
        try:
            if self._held is None:
                self._held = await self._next(by_chunk=by_chunk)
            await self.quiet()
        except GIVEN_UP:
            # Not the end: a stream of aiohttp can be read further after a cancelled read.
            self._gave_up = True
            raise
        return self._passed_on(*self._taken())

    def pull_nowait(self) -> Piece:
        data, ends_chunk = self._taken()
        self._break_off()
        return self._passed_on(data or self._raw.read_nowait(), ends_chunk)

    async def _next(self, *, by_chunk: bool) -> tuple[bytes, bool]:
        self._break_off()
        try:
            if by_chunk:
                data, ends_chunk = await self._raw.readchunk()
            else:
                data, ends_chunk = await self._raw.readany(), False
        except Exception as error:
            of_the_stream = error is self.broken() or isinstance(error, TimeoutError)
            if self._live is not None and of_the_stream:
                await self.quiet()
                self._live.fail(self._failures.failure(error))
            raise
        if not data and self._between_chunks:
            ends_chunk = False
        self._between_chunks = ends_chunk
        return data, ends_chunk

    def _break_off(self) -> None:
        """Let the body break off once the data before that has been read."""
        if self._broken_behind is not None and not self._raw._buffer:
            self._raw.set_exception(self._broken_behind)

    def _taken(self) -> tuple[bytes, bool]:
        held, self._held = self._held, None
        return held or (b"", False)

    def arrived(self) -> bool:
        return bool(self._raw.is_eof())

    def drained(self) -> bool:
        if self._held is not None or not self._raw.at_eof():
            return False
        if self._live is not None:
            self._live.end()
        return True

    def broken(self) -> BaseException | None:
        error: BaseException | None = self._raw.exception()
        return error

    def close(self, *error: BaseException) -> None:
        if self._live is not None:
            self._live.cancel() if self._gave_up else self._live.abandon()
        if error and self.broken() is None:
            self._raw.set_exception(*error)

    def _passed_on(self, data: bytes, ends_chunk: bool) -> Piece:
        self._gave_up = False
        if self._live is not None and data:
            self._live.chunk(data)
        # After data, the end is a delivery of its own: the agent asks for it.
        return Piece(data, ends_chunk, not data and self.drained())


class TapeSource:
    """Pulls from the tape; each piece waits for its turn."""

    def __init__(
        self, answer: Recorded, request: Any, failures: Failures, *, chunked: bool
    ) -> None:
        self._answer = answer
        self._request = request
        self._failures = failures
        self._chunked = chunked
        self._failed: Exception | None = None

    async def pull(self, *, by_chunk: bool) -> Piece:
        with self._request._timer:
            piece = await self._answer.areceive_chunk()
        if isinstance(piece, Failure):
            self._failed = self._failures.exception(piece, self._request)
            raise self._failed
        if piece is None:
            return Piece(b"", last=True)
        return Piece(piece, by_chunk and self._chunked)

    def pull_nowait(self) -> Piece:
        return Piece(b"")

    def arrived(self) -> bool:
        return False

    def drained(self) -> bool:
        return False

    def broken(self) -> BaseException | None:
        return self._failed

    def close(self, *error: BaseException) -> None:
        self._answer.close()


class NoProtocol:
    """Replaces a protocol: there is no socket to pause, but there may be more to decompress."""

    connected = True
    _reading_paused = False

    def __init__(self, unpack_more: Callable[[], None] | None = None) -> None:
        self._unpack_more = unpack_more

    def pause_reading(self) -> None: ...

    def resume_reading(self, *, resume_parser: bool = True) -> None:
        if resume_parser and self._unpack_more is not None:
            self._unpack_more()


def reader_class(lib: ModuleType) -> Any:
    """Return the reader class for one module of aiohttp."""

    class PullingReader(lib.StreamReader):  # type: ignore[misc,name-defined]
        def __init__(
            self,
            source: Source,
            *,
            encoding: str | None,
            chunked: bool,
            limit: int,
            timer: Any,
            loop: asyncio.AbstractEventLoop,
        ) -> None:
            super().__init__(NoProtocol(self._unpack_more), limit, timer=timer, loop=loop)
            self._source = source
            self._decoder = lib.http_parser.DeflateBuffer(self, encoding) if encoding else None
            self._held_back = False
            self._last = False
            self._pulling = False
            if chunked:
                self.begin_http_chunk_receiving()

        async def _wait(self, func_name: str) -> None:
            if self._pulling:
                raise RuntimeError(
                    f"{func_name}() called while another coroutine is "
                    "already waiting for incoming data"
                )
            self._pulling = True
            try:
                if self._held_back:
                    self._unpack_more()
                else:
                    self._take(await self._source.pull(by_chunk=func_name == "readchunk"))
            except Exception as error:
                if error is self._source.broken():
                    super().set_exception(error)
                raise
            finally:
                self._pulling = False

        def _take(self, piece: Piece) -> None:
            self._last = self._last or piece.last
            if self._decoder is not None:
                self._decode(piece.data)
            elif piece.data:
                self.feed_data(piece.data, len(piece.data))
            if piece.ends_chunk:
                self.end_http_chunk_receiving()
            if self._last and not self._held_back and not self._eof:
                self.feed_eof()

        def _unpack_more(self) -> None:
            if self._held_back:
                self._take(Piece(b""))

        def _decode(self, data: bytes) -> None:
            """Decode as far as aiohttp would, which holds back what is too much for one read."""
            decoder: Any = self._decoder
            try:
                if data or self._held_back:
                    self._held_back = bool(decoder.feed_data(data, len(data)))
                while self._held_back and self._size <= self._high_water:
                    self._held_back = bool(decoder.feed_data(b"", 0))
                if self._last and not self._held_back and not self._eof:
                    decoder.feed_eof()
            except lib.http_exceptions.HttpProcessingError as error:
                broken = lib.ClientPayloadError(str(error))
                self.set_exception(broken)
                raise broken from error

        def read_nowait(self, n: int = -1) -> bytes:
            if not self._buffer and not self._eof and self._exception is None:
                self._take(self._source.pull_nowait())
            return super().read_nowait(n)  # type: ignore[no-any-return]

        def is_eof(self) -> bool:
            return bool(super().is_eof() or self._source.arrived())

        def at_eof(self) -> bool:
            if not self._buffer and not self._eof and self._source.drained():
                self._take(Piece(b"", last=True))
            return bool(super().at_eof())

        async def wait_eof(self) -> None:
            while not self._eof:
                await self._wait("wait_eof")

        def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
            super().set_exception(exc, *cause)
            self._source.close(exc, *cause)

    return PullingReader
