"""The clients of the package `websockets`: asyncio's, and those of threads.

The seam lies below the reconnecting iterator and above the handshake, its redirects included. It
patches methods of classes, so that an agent may have imported `connect` before. The exception is
`websockets.sync.client.connect` before version 17, which is a function: only its module is patched.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from types import ModuleType
from typing import Any

from tracefork_core.exchange.current import is_crossing_seam, session_of_request
from tracefork_core.patching.instrument import Undo
from tracefork_core.patching.patch import Patches
from tracefork_core.seams.websockets.connections import (
    Data,
    InThreadConnection,
    Methods,
    OnLoopConnection,
    Opening,
    closed,
    cut,
    message_of,
    received,
    replayed,
)
from tracefork_core.seams.websockets.family import Family
from tracefork_core.seams.websockets.socket import Socket, under_session, unopened, unopened_class
from tracefork_core.seams.websockets.waiting import InThread, OnLoop, run


def instrument_asyncio(lib: ModuleType) -> Undo:
    """Patch the client of asyncio, `websockets.asyncio.client`."""
    patches, family, kind = Patches(), Family(), lib.ClientConnection
    methods = Methods(kind)

    def opening(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def opened(self: Any) -> Any:
            return connect(self, original).__await__()

        return opened

    async def connect(connector: Any, original: Callable[..., Any]) -> Any:
        session = session_of_request()
        if session is None or is_crossing_seam():
            return await _Awaited(original, connector)
        how = Opening(
            family,
            lambda: _Awaited(original, connector),
            partial(OnLoopConnection, methods),
        )
        headers = family.sent_headers(connector)
        socket = Socket(session, connector.uri, headers, how, OnLoop())
        head = await socket.open()
        if how.real is None:
            how.was_replayed = True
            connection = replayed(lib, unopened_kind, connector.uri, head, socket)
            if hasattr(connector, "__await_impl__"):  # Before 17, which closes what it opened.
                connector.connection = connection
            return connection
        how.real.tracefork = socket
        return how.real

    patches.wrap(lib.connect, "__await__", opening)
    unopened_kind = unopened_class(kind, _patch_asyncio(patches, family, kind, methods))
    return patches.undo


class _Awaited:
    """Awaits a connector of the library by its original method."""

    def __init__(self, original: Callable[..., Any], connector: Any) -> None:
        self._original = original
        self._connector = connector

    def __await__(self) -> Any:
        return self._original(self._connector)


def _patch_asyncio(
    patches: Patches, family: Family, kind: Any, methods: Methods
) -> tuple[Callable[..., Any], ...]:
    """Patch the methods of open connections; return the same methods for the others."""

    # `text` is a word of some versions only.
    async def send(self: Any, message: Any, *options: Any, **named: Any) -> None:
        if (socket := _socket(self)) is None:
            return await methods.send(self, message, *options, **named)  # type: ignore[no-any-return]
        text = named.get("text", *(options or (None,)))
        with _noting_cut(family, self):
            await socket.send(message_of(await _whole(message), text))
        return None

    async def recv(self: Any, decode: bool | None = None) -> Data:
        if (socket := _socket(self)) is None:
            return await methods.recv(self, decode)  # type: ignore[no-any-return]
        with _noting_cut(family, self):
            return received(family, self, await socket.receive(), decode)

    async def recv_streaming(self: Any, decode: bool | None = None) -> AsyncIterator[Data]:
        if _socket(self) is None:
            async for fragment in streaming(self, decode):
                yield fragment
        else:
            yield await self.recv(decode)

    async def close(self: Any, code: int = 1000, reason: str = "") -> None:
        if (socket := _socket(self)) is None:
            return await methods.close(self, code, reason)  # type: ignore[no-any-return]
        if socket.connection is not None:
            socket.connection.closing = (code, reason)  # type: ignore[attr-defined]
        await socket.close()
        closed(family, self, code, reason, by_agent=True)
        return None

    async def wait_closed(self: Any) -> None:
        socket = _unopened(self)
        if socket is None:
            return await waiting(self)  # type: ignore[no-any-return]
        await socket.closing()
        return None

    async def ping(self: Any, data: Any = None) -> Awaitable[float]:
        return await pinging(self, data) if _unopened(self) is None else _pong()

    async def pong(self: Any, data: Any = b"") -> None:
        if _unopened(self) is None:
            await ponging(self, data)

    streaming, waiting = kind.recv_streaming, kind.wait_closed
    pinging, ponging = kind.ping, kind.pong
    replacing = (send, recv, recv_streaming, close, wait_closed, ping, pong)
    for method in replacing:
        patches.replace(kind, method.__name__, method)
    return replacing


@contextmanager
def _noting_cut(family: Family, connection: Any) -> Iterator[None]:
    """Let a connection that was never opened show that the recorded one was closed or cut."""
    try:
        yield
    except Exception as error:
        if _unopened(connection) is not None:
            cut(family, connection, error)
        raise


async def _pong() -> float:
    return 0.0


async def _whole(message: Any) -> Any:
    """Return a message that an agent may give in fragments."""
    if isinstance(message, str | bytes | bytearray | memoryview):
        return message
    if hasattr(message, "__aiter__"):
        return _joined([fragment async for fragment in message])
    return _joined(list(message))


def _joined(fragments: list[Any]) -> Any:
    if fragments and isinstance(fragments[0], str):
        return "".join(fragments)
    return b"".join(fragments)


def _socket(connection: Any) -> Socket | None:
    return under_session(getattr(connection, "tracefork", None))


def _unopened(connection: Any) -> Socket | None:
    return unopened(getattr(connection, "tracefork", None))


def instrument_sync(lib: ModuleType) -> Undo:
    """Patch the client of threads, `websockets.sync.client`."""
    patches, family, kind = Patches(), Family(), lib.ClientConnection
    methods = Methods(kind)

    def open_here(original: Callable[[], Any], uri: str, headers: Any) -> Any:
        session = session_of_request()
        if session is None or is_crossing_seam():
            return original()

        async def opened() -> Any:
            return original()

        how = Opening(family, opened, partial(InThreadConnection, methods))
        socket = Socket(session, uri, headers, how, InThread())
        head = run(socket.open())
        if how.real is None:
            how.was_replayed = True
            return replayed(lib, unopened_kind, uri, head, socket)
        how.real.tracefork = socket
        return how.real

    def opening(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def connect(self: Any) -> Any:
            return open_here(partial(original, self), self.uri, family.sent_headers(self))

        return connect

    def calling(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def connect(uri: str, **options: Any) -> Any:
            headers = tuple(family.headers(options.get("additional_headers") or {}).raw_items())
            return open_here(partial(original, uri, **options), uri, headers)

        return connect

    if hasattr(lib, "reconnect"):
        patches.wrap(lib.reconnect, "connect", opening)
    else:
        patches.wrap(lib, "connect", calling)
    unopened_kind = unopened_class(kind, _patch_sync(patches, family, kind, methods))
    return patches.undo


def _patch_sync(
    patches: Patches, family: Family, kind: Any, methods: Methods
) -> tuple[Callable[..., Any], ...]:
    """Do the same as `_patch_asyncio` for connections of threads."""

    def send(self: Any, message: Any, *options: Any, **named: Any) -> None:
        if (socket := _socket(self)) is None:
            return methods.send(self, message, *options, **named)  # type: ignore[no-any-return]
        text = named.get("text", *(options or (None,)))
        if not isinstance(message, str | bytes | bytearray | memoryview):
            message = _joined(list(message))
        with _noting_cut(family, self):
            run(socket.send(message_of(message, text)))
        return None

    def recv(self: Any, timeout: float | None = None, decode: bool | None = None) -> Data:
        if (socket := _socket(self)) is None:
            return methods.recv(self, timeout, decode)  # type: ignore[no-any-return]
        with _noting_cut(family, self):
            return received(family, self, run(socket.receive(timeout)), decode)

    def recv_streaming(self: Any, decode: bool | None = None) -> Iterator[Data]:
        if _socket(self) is None:
            yield from streaming(self, decode)
        else:
            yield self.recv(decode=decode)

    def close(self: Any, code: int = 1000, reason: str = "") -> None:
        if (socket := _socket(self)) is None:
            return methods.close(self, code, reason)  # type: ignore[no-any-return]
        if socket.connection is not None:
            socket.connection.closing = (code, reason)  # type: ignore[attr-defined]
        run(socket.close())
        closed(family, self, code, reason, by_agent=True)
        return None

    streaming = kind.recv_streaming
    replacing = (send, recv, recv_streaming, close)
    for method in replacing:
        patches.replace(kind, method.__name__, method)
    return replacing
