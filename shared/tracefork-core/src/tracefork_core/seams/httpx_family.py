"""The seam of httpx and httpx2: one transport around the client's own, sync and async.

The seam lies below redirects, cookies, retries and authentication, and above the connection pool:
every attempt is an exchange. It wraps what `Client._transport_for_url` chooses, so that custom
transports, mounts and proxies from the environment are covered too. Responses, streams and
exceptions are built from the library of the client being wrapped: the clients insist on it.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import AsyncIterator, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Failure, Head, Live, Recorded, Request
from tracefork_core.exchange.current import crossing_seam, current_session
from tracefork_core.seams.ambient import Undo
from tracefork_core.seams.refusal import refusal, wants_response

_GIVEN_UP = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, SystemExit)


@lru_cache(maxsize=4)
def family(lib: ModuleType) -> Family:
    """Return the seam's classes for httpx or httpx2."""
    return Family(lib)


def instrument(lib: ModuleType) -> Undo:
    """Put the seam under every client of `lib`, and return what undoes it."""
    seam = family(lib)
    patched = []
    for client, wrap in ((lib.Client, seam.wrap), (lib.AsyncClient, seam.wrap)):
        original = client._transport_for_url
        if hasattr(original, "tracefork"):
            continue  # httpx2.alias_httpx() makes both names one module.

        def transport_for_url(self: Any, url: Any, original: Any = original, wrap: Any = wrap) -> Any:
            inner = original(self, url)
            return inner if current_session() is None else wrap(inner)

        transport_for_url.tracefork = True  # type: ignore[attr-defined]
        client._transport_for_url = transport_for_url
        patched.append((client, original))

    def undo() -> None:
        for client, original in patched:
            client._transport_for_url = original

    return undo


def is_client(value: object) -> bool:
    """Return whether `value` is a client of httpx or httpx2."""
    return _library_of(value) is not None


def bind_client(client: Any) -> Any:
    """Return a copy of a client whose transports cross the seam; the original stays as it is.

    The copy shares the original's pool and keeps it alive, since SDK clients close theirs when
    they are collected.
    """
    seam = family(_library_of(client))  # type: ignore[arg-type]
    bound = copy.copy(client)
    bound._transport = seam.wrap(client._transport)
    bound._mounts = {
        pattern: None if transport is None else seam.wrap(transport)
        for pattern, transport in client._mounts.items()
    }
    bound._tracefork_original = client
    return bound


def _library_of(client: object) -> ModuleType | None:
    import sys

    for name in ("httpx", "httpx2"):
        lib = sys.modules.get(name)
        if lib is not None and isinstance(client, (lib.Client, lib.AsyncClient)):
            return lib
    return None


class Family:
    """Transports, streams and exceptions of one library."""

    def __init__(self, lib: ModuleType) -> None:
        self.lib = lib
        self.failures = {
            name: value
            for name, value in vars(lib).items()
            if inspect.isclass(value) and issubclass(value, lib.TransportError)
        }
        self._sync_transport, self._async_transport = _transports(self)
        self.live_sync, self.live_async = _live_streams(self)
        self.replayed_sync, self.replayed_async = _replayed_streams(self)

    def wrap(self, transport: Any) -> Any:
        """Return `transport` behind the seam."""
        if isinstance(transport, (self._sync_transport, self._async_transport)):
            return transport
        if isinstance(transport, self.lib.AsyncBaseTransport):
            return self._async_transport(transport)
        return self._sync_transport(transport)

    def request(self, request: Any) -> Request:
        """Return the library's request in the words of the contract; its body has been read."""
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw
        )
        return Request(request.method, str(request.url), headers, request.content, self.lib.__name__)

    def head(self, response: Any) -> Head:
        """Return the head of a live response."""
        extensions = response.extensions
        return Head(
            response.status_code,
            extensions.get("reason_phrase", b"").decode("latin-1"),
            tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers.raw),
            extensions.get("http_version", b"HTTP/1.1").decode("latin-1"),
        )

    def response(self, head: Head, stream: Any) -> Any:
        """Build a response of this library."""
        return self.lib.Response(
            head.status,
            headers=[(n.encode("latin-1"), v.encode("latin-1")) for n, v in head.headers],
            stream=stream,
            extensions={
                "http_version": head.http_version.encode("latin-1"),
                "reason_phrase": head.reason.encode("latin-1"),
            },
        )

    def refuse(self, request: Request, error: TraceforkError) -> Any:
        """Answer with a refusal, or raise it: see `refusal`."""
        if not wants_response(request):
            raise error
        head, body = refusal(error)
        return self.response(head, self.lib.ByteStream(body))

    def failure(self, error: BaseException) -> Failure:
        """Return an exception of the library as it goes onto the tape."""
        return Failure(type(error).__name__, str(error))

    def exception(self, failure: Failure, request: Any) -> Exception:
        """Return a recorded failure as the exception it was."""
        known = self.failures.get(failure.kind)
        if known is not None:
            return known(failure.message, request=request)  # type: ignore[no-any-return]
        message = f"{failure.kind}: {failure.message}"
        return self.lib.TransportError(message, request=request)  # type: ignore[no-any-return]


def _transports(seam: Family) -> tuple[type, type]:
    lib = seam.lib

    class SyncTransport(lib.BaseTransport):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            session = current_session()
            if session is None:
                return self._inner.handle_request(request)
            request.read()
            asked = seam.request(request)
            try:
                answer = session.open(asked)
                if answer is None:
                    return self._inner.handle_request(request)
                if hasattr(answer, "receive_head"):
                    return _replay(answer, request)
            except TraceforkError as error:
                return seam.refuse(asked, error)
            return _record(answer, request, self._inner)

        def close(self) -> None:
            """Leave the inner transport to the client that owns it."""

    def _replay(answer: Recorded, request: Any) -> Any:
        head = answer.receive_head()
        if isinstance(head, Failure):
            raise seam.exception(head, request)
        return seam.response(head, seam.replayed_sync(answer, request))

    def _record(live: Live, request: Any, inner: Any) -> Any:
        try:
            with crossing_seam():
                response = inner.handle_request(request)
        except _GIVEN_UP:
            live.cancel()
            raise
        except Exception as error:
            live.fail(seam.failure(error))
            raise
        live.head(seam.head(response))
        response.stream = seam.live_sync(response.stream, live)
        return response

    class AsyncTransport(lib.AsyncBaseTransport):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            session = current_session()
            if session is None:
                return await self._inner.handle_async_request(request)
            await request.aread()
            asked = seam.request(request)
            try:
                answer = session.open(asked)
                if answer is None:
                    return await self._inner.handle_async_request(request)
                if hasattr(answer, "areceive_head"):
                    return await _areplay(answer, request)
            except TraceforkError as error:
                return seam.refuse(asked, error)
            return await _arecord(answer, request, self._inner)

        async def aclose(self) -> None:
            """Leave the inner transport to the client that owns it."""

    async def _areplay(answer: Recorded, request: Any) -> Any:
        head = await answer.areceive_head()
        if isinstance(head, Failure):
            raise seam.exception(head, request)
        return seam.response(head, seam.replayed_async(answer, request))

    async def _arecord(live: Live, request: Any, inner: Any) -> Any:
        try:
            with crossing_seam():
                response = await inner.handle_async_request(request)
        except _GIVEN_UP:
            live.cancel()
            raise
        except Exception as error:
            live.fail(seam.failure(error))
            raise
        live.head(seam.head(response))
        response.stream = seam.live_async(response.stream, live)
        return response

    return SyncTransport, AsyncTransport


def _live_streams(seam: Family) -> tuple[type, type]:
    lib = seam.lib

    class LiveSyncStream(lib.SyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any, live: Live) -> None:
            self._inner = inner
            self._live = live

        def __iter__(self) -> Iterator[bytes]:
            try:
                for chunk in self._inner:
                    self._live.chunk(chunk)
                    yield chunk
            except GeneratorExit:
                raise  # The consumer stopped between two chunks; `close` says so.
            except _GIVEN_UP:
                self._live.cancel()
                raise
            except Exception as error:
                self._live.fail(seam.failure(error))
                raise
            self._live.end()

        def close(self) -> None:
            self._live.abandon()
            self._inner.close()

    class LiveAsyncStream(lib.AsyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any, live: Live) -> None:
            self._inner = inner
            self._live = live

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in self._inner:
                    self._live.chunk(chunk)
                    yield chunk
            except GeneratorExit:
                raise
            except _GIVEN_UP:
                self._live.cancel()
                raise
            except Exception as error:
                self._live.fail(seam.failure(error))
                raise
            self._live.end()

        async def aclose(self) -> None:
            self._live.abandon()
            await self._inner.aclose()

    return LiveSyncStream, LiveAsyncStream


def _replayed_streams(seam: Family) -> tuple[type, type]:
    lib = seam.lib

    # Stateful on purpose: the openai SDK iterates a stream again to drain it.
    class ReplayedSyncStream(lib.SyncByteStream):  # type: ignore[misc,name-defined]
        def __init__(self, answer: Recorded, request: Any) -> None:
            self._answer = answer
            self._request = request

        def __iter__(self) -> Iterator[bytes]:
            while (piece := self._answer.receive_chunk()) is not None:
                if isinstance(piece, Failure):
                    raise seam.exception(piece, self._request)
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
                    raise seam.exception(piece, self._request)
                yield piece

        async def aclose(self) -> None:
            self._answer.close()

    return ReplayedSyncStream, ReplayedAsyncStream
