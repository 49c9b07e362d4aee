"""Send requests to upstream servers, over HTTP/1.1 or HTTP/2, with bodies as on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import Any

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Failure, Head, Headers, Request

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers about one connection (RFC 9110, 7.6.1): the other connection has its own."""
_NOT_SENT = HOP_BY_HOP | {"content-length", "expect", "host"}
_CONNECT_SECONDS = 30.0


class Response:
    """A response of an upstream server. `close` it, however far it was read."""

    def __init__(self, response: Any) -> None:
        self._response = response

    @property
    def head(self) -> Head:
        """The status line and the headers, as they came."""
        response = self._response
        reason = response.extensions.get("reason_phrase")
        return Head(
            response.status_code,
            response.reason_phrase if reason is None else reason.decode("latin-1"),
            _text(response.headers.raw),
            response.http_version,
        )

    def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in the pieces in which it arrives, in its content coding."""
        pieces: AsyncIterator[bytes] = self._response.aiter_raw()
        return pieces

    async def close(self) -> None:
        await self._response.aclose()


class Upstream:
    """Sends requests, and raises one of its `errors` where a connection fails."""

    def __init__(self) -> None:
        import httpx2

        # No limits: the program that uses the proxy has its own. No time limit either: it gives up.
        self._lib = httpx2
        self._client = httpx2.AsyncClient(
            http2=True,
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        )
        self.errors: tuple[type[Exception], ...] = (httpx2.HTTPError, httpx2.InvalidURL, OSError)

    async def send(self, request: Request) -> Response:
        """Send a request, and return the response once its head has arrived."""
        headers = [pair for pair in request.headers if pair[0].lower() not in _NOT_SENT]
        # Built here: a client adds headers of its own, and cookies of earlier responses.
        built = self._lib.Request(
            request.method,
            request.url,
            headers=headers,
            content=request.body if request.body or _has_length(request.headers) else None,
            extensions={"timeout": self._client.timeout.as_dict()},
        )
        return Response(await self._client.send(built, stream=True))

    async def close(self) -> None:
        await self._client.aclose()


def failure(error: BaseException) -> Failure:
    """Return an error of the connection in the form that the tape stores."""
    return Failure(type(error).__name__, str(error))


def check_extra() -> None:
    """Check that the libraries of the extra `proxy` are installed.

    Raises:
        UsageError: one of them is not.
    """
    for library in ("httpx2", "h2", "uvicorn"):
        if find_spec(library) is None:
            raise UsageError(
                f"tracefork: proxy needs an extra ({library} is not installed): "
                "pip install 'tracefork-core[proxy]'."
            )


def _has_length(headers: Headers) -> bool:
    return any(name.lower() == "content-length" for name, _ in headers)


def _text(headers: list[tuple[bytes, bytes]]) -> Headers:
    return tuple([(n.decode("latin-1"), v.decode("latin-1")) for n, v in headers])
