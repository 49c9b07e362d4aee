"""Response bodies between aiohttp, which reads them, and aiobotocore, which parses them.

A response has the parts of aiohttp's that aiobotocore uses, and its `content` the ways of reading.
A piece that arrived while the agent gave up waiting is kept for its next read, as aiohttp does.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

import aiohttp

from tracefork_bedrock.failures import builtin_of, classes_of, failure_of, made
from tracefork_core.adapters import Failure, Head, Live, Recorded, crossing_seam

_ERRORS = classes_of(aiohttp.client_exceptions, aiohttp.ClientError)
_OF_THE_WIRE = (aiohttp.ClientError, OSError)


class Response:
    """What aiobotocore uses of a response of aiohttp."""

    def __init__(self, content: Content, url: Any) -> None:
        self.content = content
        self.url = url

    async def read(self) -> bytes:
        return await self.content.read()

    def close(self) -> None:
        self.content.close()

    def release(self) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class HeardResponse(Response):
    """A live response that records what is read of its body."""

    def __init__(self, raw: Any, live: Live) -> None:
        super().__init__(HeardContent(raw, live), raw.url)
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class RecordedResponse(Response):
    """A response from a tape."""

    def __init__(self, answer: Recorded, url: str, head: Head, headers: Mapping[str, str]) -> None:
        super().__init__(RecordedContent(answer, headers), url)
        self.status = head.status
        self.reason = head.reason
        self.headers = headers


class Content(ABC):
    """The body of a response: every way of reading asks for pieces."""

    def __init__(self, length: str) -> None:
        self._left = int(length) if length.isdecimal() else None
        self._is_ended = False

    @abstractmethod
    async def _piece(self, amount: int, *, by_chunk: bool = False) -> bytes:
        """Return what comes next, at most `amount` bytes of it (-1: any number).

        `by_chunk` asks for what the server sent at once.
        """

    @abstractmethod
    def close(self) -> None:
        """Note that the agent reads no further."""

    async def read(self, n: int = -1) -> bytes:
        if n >= 0:
            return await self._piece(n) if n else b""
        pieces = []
        while piece := await self._piece(-1):
            pieces.append(piece)
        return b"".join(pieces)

    async def readany(self) -> bytes:
        return await self._piece(-1)

    async def iter_chunks(self) -> AsyncIterator[tuple[bytes, bool]]:
        while piece := await self._piece(-1, by_chunk=True):
            yield piece, True

    async def iter_any(self) -> AsyncIterator[bytes]:
        while piece := await self._piece(-1):
            yield piece

    async def iter_chunked(self, n: int) -> AsyncIterator[bytes]:
        while piece := await self._piece(n):
            yield piece

    def at_eof(self) -> bool:
        return self._is_ended

    def _is_last(self, data: bytes) -> bool:
        """Return whether a piece is the end: nothing, or the rest of a known length."""
        if self._left is not None:
            self._left -= len(data)
        return not data or (self._left is not None and self._left <= 0)


class HeardContent(Content):
    """A live body that records its pieces."""

    def __init__(self, raw: Any, live: Live) -> None:
        super().__init__(raw.headers.get("Content-Length", ""))
        self._raw = raw
        self._live = live
        self._held: bytes | None = None
        self._gave_up = False

    async def _piece(self, amount: int, *, by_chunk: bool = False) -> bytes:
        if self._is_ended:
            return b""
        try:
            if self._held is None:
                with crossing_seam():
                    self._held = await self._read(amount, by_chunk=by_chunk)
            await self._live.quiet()
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit):
            self._gave_up = True
            raise
        except Exception as error:
            if isinstance(error, _OF_THE_WIRE):
                await self._live.quiet()
                self._live.fail(failure_of(error))
            raise
        data, self._held, self._gave_up = self._held, None, False
        if data:
            self._live.chunk(data)
        if self._is_last(data):
            await self._live.quiet()
            self._is_ended = True
            self._live.end()
        return data

    async def _read(self, amount: int, *, by_chunk: bool) -> bytes:
        content = self._raw.content
        if not by_chunk:
            data: bytes = await (content.readany() if amount < 0 else content.read(amount))
            return data
        while True:
            data, ends_chunk = await content.readchunk()
            if data or not ends_chunk:  # The end of a chunk may come without data.
                return data

    def close(self) -> None:
        if not self._is_ended:
            self._live.cancel() if self._gave_up else self._live.abandon()
        self._raw.close()


class RecordedContent(Content):
    """A body from a tape."""

    def __init__(self, answer: Recorded, headers: Mapping[str, str]) -> None:
        super().__init__(headers.get("content-length", ""))
        self._answer = answer
        self._held = b""
        self._is_closed = False

    async def _piece(self, amount: int, *, by_chunk: bool = False) -> bytes:
        if self._is_closed:
            return b""
        await self._pull()
        cut = len(self._held) if amount < 0 else amount
        data, self._held = self._held[:cut], self._held[cut:]
        if data and self._is_last(data):
            await self._pull()  # As when it was recorded: the length tells the end.
        return data

    def close(self) -> None:
        self._is_closed = True
        self._answer.close()

    async def _pull(self) -> None:
        if self._held or self._is_ended:
            return
        piece = await self._answer.areceive_chunk()
        if isinstance(piece, Failure):
            raise _exception_of(piece)
        self._held, self._is_ended = piece or b"", piece is None


def _exception_of(failure: Failure) -> Exception:
    kind = _ERRORS.get(failure.kind)
    if kind is None:
        return builtin_of(failure) or aiohttp.ClientPayloadError(failure.message)
    return made(kind, failure.message)
