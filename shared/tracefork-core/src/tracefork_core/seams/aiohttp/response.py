"""Convert the responses of aiohttp, and rebuild them without a connection.

At replay, aiohttp's own code sends the request into a connection that leads nowhere, and reads the
response from it. So the response is what this version of aiohttp makes of such a head, and the
agent's traces get their usual callbacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, Literal

from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Failure, Head, Recorded
from tracefork_core.seams.aiohttp.failures import Failures
from tracefork_core.seams.aiohttp.reader import NoProtocol, TapeSource
from tracefork_core.seams.failures import refusal

_BODILESS = frozenset({204, 304, *range(100, 200)})
_CONTINUE = Head(100, "Continue", ())

MakeReader = Callable[[Any, Any, TapeSource], Any]
"""Takes the request, the headers of the response and the source of its body."""


class Responses:
    """Convert the responses of one module of aiohttp."""

    def __init__(self, lib: ModuleType, failures: Failures) -> None:
        self._lib = lib
        self._failures = failures
        self._names = _known_names(lib)

    def head(self, response: Any) -> Head:
        """Return the head of a live response."""
        version = response.version
        return Head(
            response.status,
            (response.reason or "").encode("utf-8", "surrogateescape").decode("latin-1"),
            tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in response.raw_headers),
            f"HTTP/{version.major}.{version.minor}",
        )

    async def response(self, answer: Recorded, request: Any, make_reader: MakeReader) -> Any:
        """Return the recorded response to `request`, or raise its recorded failure."""

        async def read_head() -> tuple[Any, Any]:
            if request._writer is not None:
                await asyncio.wait([request._writer])  # The response comes after the request.
            head = await answer.areceive_head()
            if isinstance(head, Failure):
                raise self._failures.exception(head, request)
            message = self._message(head)
            if request.method == "HEAD" or head.status in _BODILESS:
                await answer.areceive_chunk()
                return message, self._lib.EMPTY_PAYLOAD
            source = TapeSource(answer, request, self._failures, chunked=message.chunked)
            return message, make_reader(request, message.headers, source)

        first = self._message(_CONTINUE) if request._continue is not None else None
        connection = _Connection(_Protocol(first, read_head))
        response = await request.send(connection)
        try:
            return await response.start(connection)
        except BaseException:
            response.close()
            raise

    def _message(self, head: Head) -> Any:
        """Return the message that aiohttp's parser makes of such a head."""
        raw = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in head.headers]
        made = self._lib.client_reqrep
        named = ((_text(name), _text(value)) for name, value in raw)
        headers = made.CIMultiDict((self._names.get(n.lower(), n), value) for n, value in named)
        major, _, minor = head.http_version.removeprefix("HTTP/").partition(".")
        return self._lib.http_parser.RawResponseMessage(
            version=self._lib.HttpVersion(int(major), int(minor or 0)),
            code=head.status,
            reason=_text(head.reason.encode("latin-1")),
            headers=made.CIMultiDictProxy(headers),
            raw_headers=tuple(raw),
            should_close=False,
            compression=None,
            upgrade=False,
            chunked="chunked" in headers.get("Transfer-Encoding", "").lower(),
        )


class Refusal:
    """A synthetic answer that refuses the request; see `seams.failures`."""

    is_live: ClassVar[Literal[False]] = False

    def __init__(self, error: TraceforkError) -> None:
        self._head, self._body = refusal(error)
        self._pieces = iter([self._body])

    def receive_head(self) -> Head:
        return self._head

    async def areceive_head(self) -> Head:
        return self._head

    def receive_chunk(self) -> bytes | None:
        return next(self._pieces, None)

    async def areceive_chunk(self) -> bytes | None:
        return next(self._pieces, None)

    def close(self) -> None: ...


def _known_names(lib: ModuleType) -> dict[str, str]:
    """Return lower-case header names with aiohttp's spelling, which its C parser restores.

    Its parser in Python keeps the spelling that was received.
    """
    if lib.http_parser.HttpResponseParser is lib.http_parser.HttpResponseParserPy:
        return {}
    kind = type(lib.hdrs.CONTENT_TYPE)
    return {name.lower(): name for name in vars(lib.hdrs).values() if isinstance(name, kind)}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


class _Transport:
    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None: ...

    def writelines(self, data: Iterable[bytes]) -> None: ...


class _Protocol(NoProtocol):
    _paused = False
    upgraded = False
    writing_paused = False

    def __init__(self, first: Any, read_head: Callable[[], Any]) -> None:
        super().__init__()
        self.transport = _Transport()
        self._first = first
        self._read_head = read_head

    async def read(self) -> Any:
        first, self._first = self._first, None
        return (first, None) if first is not None else await self._read_head()

    def start_timeout(self) -> None: ...

    async def _drain_helper(self) -> None: ...

    def set_exception(self, *error: BaseException) -> None:
        """Ignore a request body that cannot be written: the tape holds the outcome."""


class _Connection:
    _connector = SimpleNamespace(force_close=False)
    closed = False

    def __init__(self, protocol: _Protocol) -> None:
        self.protocol = protocol
        self.transport = protocol.transport
        self._callbacks: list[Callable[[], None]] = []

    def add_callback(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def release(self) -> None:
        self.closed = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    close = release
