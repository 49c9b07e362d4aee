"""The websockets of httpx2: `client.websocket`, `connect_ws` and the sessions behind them.

The handshake crosses the client's transport like any request, so redirects, cookies and
authentication are above it. The response carries the socket to the session that reads messages.
In a replay the session has no stream and starts no thread or task.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import wraps
from types import ModuleType, SimpleNamespace
from typing import Any

from tracefork_core.exchange.contract import Failure, Head, Session
from tracefork_core.exchange.current import crossing_seam
from tracefork_core.patching.instrument import Undo
from tracefork_core.patching.patch import Patches
from tracefork_core.seams.failures import builtin_of
from tracefork_core.seams.httpx.family import Family
from tracefork_core.seams.websockets.messages import Message, close_message
from tracefork_core.seams.websockets.socket import (
    SWITCHING,
    Connection,
    Socket,
    under_session,
    unopened,
)
from tracefork_core.seams.websockets.waiting import InThread, OnLoop, run

_SOCKET = "tracefork"


def asks_for_websocket(request: Any, family: Family) -> bool:
    """Return whether a request is a handshake of httpx2's own websockets."""
    return family.lib.__name__ == "httpx2" and "sec-websocket-key" in request.headers


class RejectedError(Exception):
    """The server answered a handshake with a response."""

    def __init__(self, head: Head, body: bytes) -> None:
        super().__init__(head.status)
        self.head = head
        self.body = body


def open_sync(session: Session, request: Any, inner: Any, family: Family) -> Any:
    """Return the response to a handshake, live or recorded."""

    async def sent() -> Any:
        response = inner.handle_request(request)
        if response.status_code != SWITCHING:
            raise RejectedError(family.head(response), response.read())
        return response

    opening = _Opening(family, request, sent, is_async=False)
    socket = Socket(session, str(request.url), _headers(request), opening, InThread())
    try:
        return opening.response(run(socket.open()), socket)
    except RejectedError as error:
        return family.response(error.head, family.lib.ByteStream(error.body))


async def open_async(session: Session, request: Any, inner: Any, family: Family) -> Any:
    """Do the same as `open_sync`, async."""

    async def sent() -> Any:
        response = await inner.handle_async_request(request)
        if response.status_code != SWITCHING:
            raise RejectedError(family.head(response), await response.aread())
        return response

    opening = _Opening(family, request, sent, is_async=True)
    socket = Socket(session, str(request.url), _headers(request), opening, OnLoop())
    try:
        return opening.response(await socket.open(), socket)
    except RejectedError as error:
        return family.response(error.head, family.lib.ByteStream(error.body))


def _headers(request: Any) -> tuple[tuple[str, str], ...]:
    own = ("sec-websocket-key",)
    return tuple((name, value) for name, value in request.headers.multi_items() if name not in own)


class _Opening:
    """The library of one websocket."""

    def __init__(
        self, family: Family, request: Any, sent: Callable[[], Awaitable[Any]], *, is_async: bool
    ) -> None:
        self.name = family.lib.__name__
        self._family = family
        self._request = request
        self._sent = sent
        self._is_async = is_async
        self._live: Any = None
        self._was_replayed = False

    async def connect(self) -> tuple[Connection, Head]:
        """Open a connection, for the session of the agent or in the middle of a fork."""
        self._live = await self._sent()
        connection = _connection(self._is_async)
        if self._was_replayed:
            await connection.begin(self._live)
        return connection, self._family.head(self._live)

    def response(self, head: Head, socket: Socket) -> Any:
        """Return the response that the session of the agent is made of."""
        if self._live is not None:
            self._live.extensions[_SOCKET] = socket
            return self._live
        self._was_replayed = True
        response = self._family.response(head, self._family.lib.ByteStream(b""))
        response.extensions.update({"network_stream": None, _SOCKET: socket})
        return response

    def failure(self, error: BaseException) -> Failure:
        return self._family.failure(error)

    def exception(self, failure: Failure) -> Exception:
        kind = getattr(_errors(), failure.kind, None)
        if isinstance(kind, type) and issubclass(kind, _errors().HTTPXWSException):
            return kind()  # type: ignore[no-any-return]
        return builtin_of(failure) or self._family.exception(failure, self._request)

    def rejection(self, error: BaseException) -> tuple[Head, bytes] | None:
        return (error.head, error.body) if isinstance(error, RejectedError) else None

    def rejected(self, head: Head, body: bytes) -> Exception:
        return RejectedError(head, body)


def _errors() -> Any:
    return sys.modules["httpx2.websockets._exceptions"]


_connections: dict[bool, Callable[[], Any]] = {}
"""What makes a connection of a session: async or not."""


def _connection(is_async: bool) -> Any:
    return _connections[is_async]()


def instrument_sessions(api: ModuleType) -> Undo:
    """Patch the sessions of httpx2's websockets."""
    patches = Patches()
    _patch_sync(patches, api)
    _patch_async(patches, api)
    return patches.undo


def _patch_sync(patches: Patches, api: Any) -> None:
    kind = api.WebSocketSession
    methods = SimpleNamespace(
        enter=kind.__enter__,
        leave=kind.__exit__,
        send=kind.send,
        receive=kind.receive,
        close=kind.close,
    )

    class Open(_Open):
        async def begin(self, response: Any) -> None:
            self.is_own = True
            self.real = kind(response.extensions["network_stream"], response=response)
            methods.enter(self.real)

        async def send(self, message: Message) -> None:
            methods.send(self.real, _event(api, message))

        async def receive(self, timeout: float | None) -> Message:
            try:
                return _message(api, methods.receive(self.real, timeout))
            except api.WebSocketDisconnect as error:
                return close_message(error.code, error.reason)
            except TimeoutError as error:
                return Message(str(error).encode(), "timeout")

        async def close(self) -> None:
            methods.close(self.real, *self.closing)
            if self.is_own:
                methods.leave(self.real, None, None, None)

    def enter(self: Any) -> Any:
        if _unopened(self) is not None:
            return self
        with crossing_seam():
            entered = methods.enter(self)
        if (socket := _socket(self)) is not None:
            socket.connection.real = self  # type: ignore[union-attr]
        return entered

    def leave(self: Any, *error: Any) -> None:
        socket = _of(self)
        if socket is None or getattr(socket.connection, "real", None) is self:
            methods.leave(self, *error)
        else:
            self.close()

    def send(self: Any, event: Any) -> None:
        socket = _socket(self)
        if socket is not None and isinstance(event, api.wsproto.events.Message):
            run(socket.send(_message(api, event)))
        elif _unopened(self) is None:
            methods.send(self, event)

    def receive(self: Any, timeout: float | None = None) -> Any:
        if (socket := _socket(self)) is None:
            return methods.receive(self, timeout)
        return _received(api, run(socket.receive(timeout)))

    def close(self: Any, code: int = 1000, reason: str | None = None) -> None:
        if (socket := _socket(self)) is not None:
            _close_with(socket, code, reason)
            run(socket.close())
        elif _unopened(self) is None:
            methods.close(self, code, reason)

    _connections[False] = Open
    patches.replace(kind, "__enter__", enter)
    patches.replace(kind, "__exit__", leave)
    for method in (send, receive, close):
        patches.replace(kind, method.__name__, method)
    for name in ("_background_receive", "_background_keepalive_ping"):
        patches.wrap(kind, name, _below_seam)


def _patch_async(patches: Patches, api: Any) -> None:
    kind = api.AsyncWebSocketSession
    methods = SimpleNamespace(
        enter=kind.__asynccontextmanager__, send=kind.send, receive=kind.receive, close=kind.close
    )

    class Open(_Open):
        def __init__(self) -> None:
            super().__init__()
            self._entered: Any = None

        async def begin(self, response: Any) -> None:
            self.real = kind(response.extensions["network_stream"], response=response)
            self._entered = methods.enter(self.real)
            await self._entered.__aenter__()

        async def send(self, message: Message) -> None:
            await methods.send(self.real, _event(api, message))

        async def receive(self, timeout: float | None) -> Message:
            try:
                return _message(api, await methods.receive(self.real, timeout))
            except api.WebSocketDisconnect as error:
                return close_message(error.code, error.reason)
            except TimeoutError as error:
                return Message(str(error).encode(), "timeout")

        async def close(self) -> None:
            await methods.close(self.real, *self.closing)
            if self._entered is not None:
                entered, self._entered = self._entered, None
                await entered.__aexit__(None, None, None)

    @asynccontextmanager
    async def entered(self: Any) -> AsyncIterator[Any]:
        if _unopened(self) is not None:
            # What is raised inside is in a group of exceptions, as below.
            async with api.anyio.create_task_group():
                try:
                    yield self
                finally:
                    await self.close()
            return
        if (socket := _socket(self)) is not None:
            socket.connection.real = self  # type: ignore[union-attr]
        async with methods.enter(self):
            yield self

    async def send(self: Any, event: Any) -> None:
        socket = _socket(self)
        if socket is not None and isinstance(event, api.wsproto.events.Message):
            await socket.send(_message(api, event))
        elif _unopened(self) is None:
            await methods.send(self, event)

    async def receive(self: Any, timeout: float | None = None) -> Any:
        if (socket := _socket(self)) is None:
            return await methods.receive(self, timeout)
        return _received(api, await socket.receive(timeout))

    async def close(self: Any, code: int = 1000, reason: str | None = None) -> None:
        if (socket := _socket(self)) is not None:
            _close_with(socket, code, reason)
            await socket.close()
        elif _unopened(self) is None:
            await methods.close(self, code, reason)

    _connections[True] = Open
    patches.replace(kind, "__asynccontextmanager__", entered)
    for method in (send, receive, close):
        patches.replace(kind, method.__name__, method)
    for name in ("_background_receive", "_background_keepalive_ping"):
        patches.wrap(kind, name, _below_seam_async)


def _close_with(socket: Socket, *closing: Any) -> None:
    if isinstance(socket.connection, _Open):
        socket.connection.closing = closing


class _Open:
    """An open connection: the agent's session, or one that a fork opened."""

    def __init__(self) -> None:
        self.real: Any = None
        self.is_own = False
        self.closing: tuple[Any, ...] = ()


def _below_seam(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def background(self: Any, *arguments: Any) -> Any:
        with crossing_seam():
            return original(self, *arguments)

    return background


def _below_seam_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def background(self: Any, *arguments: Any) -> Any:
        with crossing_seam():
            return await original(self, *arguments)

    return background


def _event(api: Any, message: Message) -> Any:
    if message.kind == "text":
        return api.wsproto.events.TextMessage(data=message.data.decode())
    return api.wsproto.events.BytesMessage(data=message.data)


def _message(api: Any, event: Any) -> Message:
    if isinstance(event.data, str):
        return Message(event.data.encode())
    return Message(bytes(event.data), "binary")


def _received(api: Any, message: Message) -> Any:
    match message.kind:
        case "timeout":
            raise TimeoutError(*([message.data.decode()] if message.data else ()))
        case "close":
            code, reason = message.closing
            with suppress(ValueError):  # A server's own code has no name.
                code = api.wsproto.frame_protocol.CloseReason(code)
            raise api.WebSocketDisconnect(code, reason)
    return _event(api, message)


def _socket(websocket: Any) -> Socket | None:
    return under_session(_of(websocket))


def _unopened(websocket: Any) -> Socket | None:
    return unopened(_of(websocket))


def _of(websocket: Any) -> Socket | None:
    response = websocket.response
    return None if response is None else response.extensions.get(_SOCKET)
