"""Convert the requests, responses and exceptions of httpx and httpx2, which have classes each.

Responses, streams and exceptions are built from the library of the client: it accepts no others.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Failure, Head, Headers, Live, Request
from tracefork_core.seams.failures import builtin_of, refusal, wants_response
from tracefork_core.seams.httpx.streams import held_streams, live_streams, replayed_streams

_FRAMING = frozenset({"content-length", "transfer-encoding"})
_ENCODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class Family:
    """Requests, responses, streams and exceptions of one library."""

    def __init__(self, lib: ModuleType) -> None:
        self.lib = lib
        self.failures: dict[str, Any] = {
            name: value
            for name, value in vars(lib).items()
            if inspect.isclass(value) and issubclass(value, lib.TransportError)
        }
        self.held_sync, self.held_async = held_streams(lib)
        self.live_sync, self.live_async = live_streams(lib, self.failure)
        self.replayed_sync, self.replayed_async = replayed_streams(lib, self.exception)

    def read(self, request: Any) -> Request:
        """Read the body of a request, once, and return the `Request` of the contract."""
        if not isinstance(request.stream, self.lib.ByteStream):
            pieces = list(request.stream)
            request.stream = self.held_sync(request.stream, pieces)
            return self._request(request, b"".join(pieces))
        return self._request(request, request.read())

    async def aread(self, request: Any) -> Request:
        """Do the same as `read`, async."""
        if not isinstance(request.stream, self.lib.ByteStream):
            pieces = [piece async for piece in request.stream]
            request.stream = self.held_async(request.stream, pieces)
            return self._request(request, b"".join(pieces))
        return self._request(request, await request.aread())

    def _request(self, request: Any, body: bytes) -> Request:
        headers = _decoded(request.headers)
        return Request(request.method, str(request.url), headers, body, self.lib.__name__)

    def sent(self, request: Any, live: Live) -> Any:
        """Return the request to send: the agent's, or the one that a fork sends instead."""
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
        # HTTP/2 and mocks have no reason phrase: the response returns the usual one.
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
        """Return a live response whose body records what the agent reads of it."""
        head = self.head(response)
        if not hasattr(response, "_content"):
            live.head(head)
            response.stream = live_stream(response.stream, live)
            return response
        # The agent's own transport has read the body or made it up: the stream is not read again.
        body = response.content
        if isinstance(response.stream, self.lib.ByteStream):
            body = b"".join(response.stream)
        elif "content-encoding" in response.headers:
            # The bytes of the wire are gone. Without these headers, head and body agree again.
            kept = tuple(pair for pair in head.headers if pair[0].lower() not in _ENCODED)
            head = head._replace(headers=kept)
        live.head(head)
        if body:
            live.chunk(body)
        live.end()
        return response

    def refuse(self, request: Request, error: TraceforkError) -> Any:
        """Answer with a refusal, or raise the error: see `seams.failures`."""
        if not wants_response(request):
            raise error
        head, body = refusal(error)
        return self.response(head, self.lib.ByteStream(body))

    def failure(self, error: BaseException) -> Failure:
        """Return an exception in the form that the tape stores."""
        return Failure(type(error).__name__, str(error))

    def exception(self, failure: Failure, request: Any) -> Exception:
        """Rebuild the exception of a recorded failure."""
        known = self.failures.get(failure.kind)
        if known is not None:
            return known(failure.message, request=request)  # type: ignore[no-any-return]
        if (builtin := builtin_of(failure)) is not None:
            return builtin  # A client on a closed event loop raises a RuntimeError.
        message = f"{failure.kind}: {failure.message}"
        return self.lib.TransportError(message, request=request)  # type: ignore[no-any-return]


def _decoded(headers: Any) -> Headers:
    # A list first: a generator takes a third longer, and each exchange calls this twice.
    return tuple([(n.decode("latin-1"), v.decode("latin-1")) for n, v in headers.raw])
