"""The websockets of aiohttp: `ws_connect`, and the object that it returns.

aiohttp returns the end of a connection as a message instead of raising it: CLOSE for the server's
close frame, and CLOSED where the connection was cut. What is not a message of the server goes onto
the tape as a failure by these names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from types import ModuleType, SimpleNamespace
from typing import Any

from tracefork_core.exchange.contract import Failure, Head
from tracefork_core.exchange.current import is_crossing_seam, session_of_request
from tracefork_core.patching.patch import Patches
from tracefork_core.seams.aiohttp.failures import Failures
from tracefork_core.seams.websockets.messages import Message, close_message
from tracefork_core.seams.websockets.socket import (
    Connection,
    Socket,
    under_session,
    unopened,
    unopened_class,
)
from tracefork_core.seams.websockets.waiting import OnLoop

_CUT = 1006
_PORTS = {"ws": 80, "http": 80, "wss": 443, "https": 443}


class EndedError(Exception):
    """A connection ended in another way than by a close frame."""


def patch_websockets(patches: Patches, lib: ModuleType, failures: Failures) -> None:
    """Make exchanges of what the websockets of `lib` carry."""
    kind = lib.ClientWebSocketResponse
    methods = SimpleNamespace(
        send_str=kind.send_str, send_bytes=kind.send_bytes, receive=kind.receive, close=kind.close
    )

    def opening(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def connect(self: Any, url: Any, **options: Any) -> Any:
            session = session_of_request()
            if session is None or is_crossing_seam():
                return await original(self, url, **options)
            full = self._build_url(url)
            if options.get("params"):
                full = full.extend_query(options["params"])
            how = _Opening(lib, failures, methods, full, lambda: original(self, url, **options))
            headers = self._prepare_headers(options.get("headers")).items()
            sent = tuple((str(name), str(value)) for name, value in headers)
            socket = Socket(session, str(full), sent, how, OnLoop())
            head = await socket.open()
            if how.real is None:
                return _replayed(unopened_kind, head, socket)
            how.real.tracefork, how.real._tracefork_closed = socket, False
            return how.real

        return connect

    patches.wrap(lib.ClientSession, "_ws_connect", opening)
    unopened_kind = unopened_class(kind, _patch_messages(patches, lib, kind, methods))


def _patch_messages(
    patches: Patches, lib: ModuleType, kind: Any, methods: Any
) -> tuple[Callable[..., Any], ...]:
    """Patch the methods of open websockets; return the same methods for the others."""

    async def send_str(self: Any, data: str, compress: int | None = None) -> None:
        if (socket := _socket(self)) is None:
            return await methods.send_str(self, data, compress)  # type: ignore[no-any-return]
        await socket.send(Message(data.encode()))
        return None

    async def send_bytes(self: Any, data: Any, compress: int | None = None) -> None:
        if (socket := _socket(self)) is None:
            return await methods.send_bytes(self, data, compress)  # type: ignore[no-any-return]
        await socket.send(Message(bytes(data), "binary"))
        return None

    async def receive(self: Any, timeout: float | None = None) -> Any:
        if (socket := _socket(self)) is None:
            return await methods.receive(self, timeout)
        try:
            return _received(lib, self, await socket.receive(timeout))
        except EndedError as ended:
            return _ended(lib, self, str(ended))

    async def close(self: Any, *, code: int = 1000, message: bytes = b"") -> bool:
        if (socket := _socket(self)) is None:
            return await methods.close(self, code=code, message=message)  # type: ignore[no-any-return]
        was_closed = bool(self._closed)
        if socket.connection is not None:
            socket.connection.closing = (code, message)  # type: ignore[attr-defined]
        await socket.close()
        if socket.connection is None:
            _close(self, code)
        return not was_closed

    async def ping(self: Any, message: bytes = b"") -> None:
        if not _is_unopened(self):
            await pinging(self, message)

    async def pong(self: Any, message: bytes = b"") -> None:
        if not _is_unopened(self):
            await ponging(self, message)

    pinging, ponging = kind.ping, kind.pong
    replacing = (send_str, send_bytes, receive, close, ping, pong)
    for method in replacing:
        patches.replace(kind, method.__name__, method)
    return replacing


class _Opening:
    """The library of one websocket: how it is opened, and what its exceptions mean."""

    name = "aiohttp"

    def __init__(
        self,
        lib: ModuleType,
        failures: Failures,
        methods: Any,
        url: Any,
        opened: Callable[[], Any],
    ) -> None:
        self._lib = lib
        self._failures = failures
        self._methods = methods
        self._url = url
        self._opened = opened
        self.real: Any = None

    async def connect(self) -> tuple[Connection, Head]:
        """Open a connection, and return it and the answer to its handshake."""
        self.real = await self._opened()
        response = self.real._response
        headers = tuple((str(name), str(value)) for name, value in response.headers.items())
        head = Head(response.status, response.reason or "", headers)
        return _Open(self._lib, self._methods, self.real), head

    def failure(self, error: BaseException) -> Failure:
        if isinstance(error, EndedError):
            return Failure(type(error).__name__, str(error))
        return self._failures.failure(error)

    def exception(self, failure: Failure) -> Exception:
        if failure.kind == EndedError.__name__:
            return EndedError(failure.message)
        port = self._url.port or _PORTS.get(self._url.scheme)
        is_ssl = self._url.scheme in ("wss", "https")
        place = (self._url.host, port, is_ssl, True, None, None, None)
        key = self._lib.client_reqrep.ConnectionKey(*place)
        asked = SimpleNamespace(connection_key=key, request_info=self._info(), proxy=None)
        return self._failures.exception(failure, asked)

    def _info(self) -> Any:
        kinds = self._lib.typedefs
        headers = kinds.CIMultiDictProxy(kinds.CIMultiDict())
        return self._lib.RequestInfo(self._url, "GET", headers, self._url)

    def rejection(self, error: BaseException) -> tuple[Head, bytes] | None:
        if not isinstance(error, self._lib.WSServerHandshakeError):
            return None
        headers = tuple((str(name), str(value)) for name, value in (error.headers or {}).items())
        return Head(error.status, error.message, headers), b""

    def rejected(self, head: Head, body: bytes) -> Exception:
        headers = self._lib.typedefs.CIMultiDict(head.headers)
        return self._lib.WSServerHandshakeError(  # type: ignore[no-any-return]
            self._info(), (), status=head.status, message=head.reason, headers=headers
        )


class _Open:
    """An open connection."""

    def __init__(self, lib: ModuleType, methods: Any, real: Any) -> None:
        self._types = lib.WSMsgType
        self._methods = methods
        self._real = real
        self.closing: tuple[int, bytes] = (1000, b"")

    async def send(self, message: Message) -> None:
        if message.kind == "text":
            await self._methods.send_str(self._real, message.data.decode())
        else:
            await self._methods.send_bytes(self._real, message.data)

    async def receive(self, timeout: float | None) -> Message:
        try:
            frame = await self._methods.receive(self._real, timeout)
        except asyncio.TimeoutError:  # noqa: UP041 - as aiohttp names it
            return Message(b"", "timeout")
        if frame.type is self._types.TEXT:
            text = frame.data
            return Message(text.encode() if isinstance(text, str) else bytes(text))
        if frame.type is self._types.BINARY:
            return Message(bytes(frame.data), "binary")
        if frame.type is self._types.CLOSE:
            return close_message(int(frame.data), frame.extra or "")
        if frame.type is self._types.ERROR:
            code = getattr(frame.data, "code", None) or _CUT
            raise EndedError(f"{code} {frame.data}")
        raise EndedError(str(self._real.close_code or _CUT))

    async def close(self) -> None:
        code, message = self.closing
        await self._methods.close(self._real, code=code, message=message)


def _received(lib: ModuleType, websocket: Any, message: Message) -> Any:
    types = lib.WSMsgType
    match message.kind:
        case "timeout":
            raise asyncio.TimeoutError  # noqa: UP041 - as aiohttp names it
        case "close":
            code, reason = message.closing
            socket = websocket.tracefork
            if socket.closed is None or websocket._tracefork_closed:
                return lib.WSMessage(types.CLOSED, None, None)
            websocket._tracefork_closed = True
            _close(websocket, code)
            return lib.WSMessage(types.CLOSE, code, reason)
        case "binary":
            return lib.WSMessage(types.BINARY, message.data, "")
    return lib.WSMessage(types.TEXT, message.data.decode(), "")


def _ended(lib: ModuleType, websocket: Any, text: str) -> Any:
    code, _, reason = text.partition(" ")
    number = int(code) if code.isascii() and code.isdigit() else _CUT
    if _is_unopened(websocket):
        _close(websocket, number)
    if not reason:
        return lib.WSMessage(lib.WSMsgType.CLOSED, None, None)
    error = lib.WebSocketError(number, reason)
    return lib.WSMessage(lib.WSMsgType.ERROR, error, None)


def _close(websocket: Any, code: int) -> None:
    """Let a websocket show that it is closed, and with which code."""
    if not websocket._closed:
        websocket._closed, websocket._close_code = True, code


def _replayed(kind: type, head: Head, socket: Socket) -> Any:
    """Return a websocket of the library that was never opened."""
    websocket: Any = object.__new__(kind)
    chosen = (v for name, v in head.headers if name.lower() == "sec-websocket-protocol")
    websocket._response = SimpleNamespace(connection=None, close=lambda: None)
    websocket._conn = websocket._reader = websocket._writer = websocket._exception = None
    websocket._closed, websocket._closing, websocket._close_code = False, False, None
    websocket._protocol = next(chosen, None)
    websocket._compress, websocket._client_notakeover = 0, False
    websocket.tracefork, websocket._tracefork_closed = socket, False
    return websocket


def _socket(websocket: Any) -> Socket | None:
    return under_session(getattr(websocket, "tracefork", None))


def _is_unopened(websocket: Any) -> bool:
    return unopened(getattr(websocket, "tracefork", None)) is not None
