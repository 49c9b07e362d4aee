"""The seam of httpx and httpx2: one transport around the client's own, sync and async.

The seam lies below redirects, cookies, retries and authentication, and above the connection pool:
every attempt is an exchange. It wraps what `Client._transport_for_url` chooses, so that custom
transports, mounts and proxies from the environment are covered too. Responses, streams and
exceptions are built from the library of the client being wrapped: the clients insist on it.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any, cast

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Failure, Head, Headers, Live, Recorded, Request
from tracefork_core.exchange.current import crossing_seam, current_session, is_crossing_seam
from tracefork_core.seams.ambient import Undo
from tracefork_core.seams.httpx_streams import (
    GIVEN_UP,
    held_streams,
    live_streams,
    replayed_streams,
)
from tracefork_core.seams.refusal import refusal, wants_response

_FRAMING = frozenset({"content-length", "transfer-encoding"})
_ENCODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})


@lru_cache(maxsize=4)
def family(lib: ModuleType) -> Family:
    """Return the seam's classes for httpx or httpx2."""
    return Family(lib)


def instrument(lib: ModuleType) -> Undo:
    """Put the seam under every client of `lib`, and return what undoes it."""
    seam = family(lib)
    patched = []
    for client in (lib.Client, lib.AsyncClient):
        original = client._transport_for_url
        if hasattr(original, "tracefork"):
            continue  # httpx2.alias_httpx() makes both names one module.

        def transport_for_url(self: Any, url: Any, original: Any = original) -> Any:
            inner = original(self, url)
            return inner if current_session() is None else seam.wrap(self, inner)

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
    seam = family(_library_of(client))
    bound = copy.copy(client)
    bound._transport = seam.wrap(client, client._transport)
    bound._mounts = {
        pattern: None if transport is None else seam.wrap(client, transport)
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
        self.failures: dict[str, Any] = {
            name: value
            for name, value in vars(lib).items()
            if inspect.isclass(value) and issubclass(value, lib.TransportError)
        }
        self._sync_transport, self._async_transport = _transports(self)
        self.held_sync, self.held_async = held_streams(lib)
        self.live_sync, self.live_async = live_streams(lib, self.failure)
        self.replayed_sync, self.replayed_async = replayed_streams(lib, self.exception)

    def wrap(self, client: Any, transport: Any) -> Any:
        """Return a client's transport behind the seam.

        The client tells sync from async: a transport can be both (`MockTransport`).
        """
        if isinstance(transport, (self._sync_transport, self._async_transport)):
            return transport
        if isinstance(client, self.lib.AsyncClient):
            return self._async_transport(transport)
        return self._sync_transport(transport)

    def read(self, request: Any) -> Request:
        """Read the body of a request once, and return it in the words of the contract."""
        if not isinstance(request.stream, self.lib.ByteStream):
            pieces = list(request.stream)
            request.stream = self.held_sync(request.stream, pieces)
            return self._request(request, b"".join(pieces))
        return self._request(request, request.read())

    async def aread(self, request: Any) -> Request:
        """Do what `read` does, on an event loop."""
        if not isinstance(request.stream, self.lib.ByteStream):
            pieces = [piece async for piece in request.stream]
            request.stream = self.held_async(request.stream, pieces)
            return self._request(request, b"".join(pieces))
        return self._request(request, await request.aread())

    def _request(self, request: Any, body: bytes) -> Request:
        headers = _decoded(request.headers)
        return Request(request.method, str(request.url), headers, body, self.lib.__name__)

    def sent(self, request: Any, live: Live) -> Any:
        """Return what is sent: what the agent asked, or what a fork asks instead."""
        if (asked := live.sends) is None:
            return request
        framed = _FRAMING if str(request.url) == asked.url else _FRAMING | {"host"}
        return self.lib.Request(
            asked.method,
            asked.url,
            headers=[pair for pair in asked.headers if pair[0].lower() not in framed],
            content=asked.body,
            extensions=request.extensions,
        )

    def head(self, response: Any) -> Head:
        """Return the head of a live response."""
        # HTTP/2 has no reason phrase, nor has a mock: the response knows the usual one.
        reason = response.extensions.get("reason_phrase")
        return Head(
            response.status_code,
            response.reason_phrase if reason is None else reason.decode("latin-1"),
            _decoded(response.headers),
            response.http_version,
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

    def heard(self, response: Any, live: Live, live_stream: type) -> Any:
        """Return a live response with a body that tells the session what is read of it."""
        head = self.head(response)
        if not hasattr(response, "_content"):
            live.head(head)
            response.stream = live_stream(response.stream, live)
            return response
        # A transport of the agent's own has read it (or made it up): nobody reads the stream again.
        body = response.content
        if isinstance(response.stream, self.lib.ByteStream):
            body = b"".join(response.stream)
        elif "content-encoding" in response.headers:
            # What came over the wire is gone. Without these headers the rest tells the truth.
            kept = tuple(pair for pair in head.headers if pair[0].lower() not in _ENCODED)
            head = replace(head, headers=kept)
        live.head(head)
        if body:
            live.chunk(body)
        live.end()
        return response

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


def _decoded(headers: Any) -> Headers:
    # A list first: a generator takes a third longer, and each exchange has two of these.
    return tuple([(n.decode("latin-1"), v.decode("latin-1")) for n, v in headers.raw])


def _transports(seam: Family) -> tuple[type, type]:
    lib = seam.lib

    class SyncTransport(lib.BaseTransport):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            session = current_session()
            if session is None or is_crossing_seam():
                return self._inner.handle_request(request)
            asked = seam.read(request)
            try:
                answer = session.open(asked)
                if answer is None:
                    return self._inner.handle_request(request)
                if hasattr(answer, "receive_head"):
                    return _replay(cast(Recorded, answer), request)
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
                response = inner.handle_request(seam.sent(request, live))
        except GIVEN_UP:
            live.cancel()
            raise
        except Exception as error:
            live.fail(seam.failure(error))
            raise
        return seam.heard(response, live, seam.live_sync)

    class AsyncTransport(lib.AsyncBaseTransport):  # type: ignore[misc,name-defined]
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            session = current_session()
            if session is None or is_crossing_seam():
                return await self._inner.handle_async_request(request)
            asked = await seam.aread(request)
            try:
                answer = session.open(asked)
                if answer is None:
                    return await self._inner.handle_async_request(request)
                if hasattr(answer, "areceive_head"):
                    return await _areplay(cast(Recorded, answer), request)
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
                response = await inner.handle_async_request(seam.sent(request, live))
            await live.quiet()
        except GIVEN_UP:
            live.cancel()
            raise
        except Exception as error:
            await live.quiet()
            live.fail(seam.failure(error))
            raise
        return seam.heard(response, live, seam.live_async)

    return SyncTransport, AsyncTransport
