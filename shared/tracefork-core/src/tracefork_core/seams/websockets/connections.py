"""The connections of the package `websockets` under a session: asyncio's, and those of threads.

The agent holds a connection of the library in every case, with `tracefork` as its socket. While
recording it is the open one. In a replay it was never opened: `replayed` makes it, and the patched
methods of its class ask the socket instead of a server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tracefork_core.exchange.contract import Failure, Head, Headers
from tracefork_core.exchange.current import crossing_seam, rebuilding
from tracefork_core.seams.websockets.family import Family
from tracefork_core.seams.websockets.messages import Message
from tracefork_core.seams.websockets.socket import Connection, Socket

Data = str | bytes


class Methods:
    """The original methods of a class of connections."""

    def __init__(self, kind: Any) -> None:
        self.send: Callable[..., Any] = kind.send
        self.recv: Callable[..., Any] = kind.recv
        self.close: Callable[..., Any] = kind.close


class Opening:
    """The library of one websocket: how it is opened, and what its exceptions mean.

    Args:
        opened: opens a connection of the library.
        kind: makes a `Connection` of it.
    """

    name = Family.name

    def __init__(
        self,
        family: Family,
        opened: Callable[[], Awaitable[Any]],
        kind: Callable[[Family, Any], Connection],
    ) -> None:
        self._family = family
        self._opened = opened
        self._kind = kind
        self.real: Any = None
        self.was_replayed = False

    async def connect(self) -> tuple[Connection, Head]:
        """Open a connection, and return it and the answer to its handshake."""
        self.real = await self._opened()
        if self.was_replayed:  # The agent has used its connection as it must already.
            self.real.pending_legacy_warning = False
        return self._kind(self._family, self.real), self._family.head(self.real)

    def failure(self, error: BaseException) -> Failure:
        return self._family.failure(error)

    def exception(self, failure: Failure) -> Exception:
        return self._family.exception(failure)

    def rejection(self, error: BaseException) -> tuple[Head, bytes] | None:
        return self._family.rejection(error)

    def rejected(self, head: Head, body: bytes) -> Exception:
        return self._family.rejected(head, body)


class OnLoopConnection:
    """An open connection of asyncio."""

    def __init__(self, methods: Methods, family: Family, real: Any) -> None:
        self._methods = methods
        self._family = family
        self._real = real
        self.closing: tuple[Any, ...] = ()

    async def send(self, message: Message) -> None:
        await self._methods.send(self._real, data_of(message))

    async def receive(self, timeout: float | None) -> Message:
        try:
            return message_of(await self._methods.recv(self._real))
        except self._family.exceptions.ConnectionClosed as error:
            if (closing := self._family.closing(error)) is None:
                raise
            return closing

    async def close(self) -> None:
        await self._methods.close(self._real, *self.closing)


class InThreadConnection:
    """An open connection of threads."""

    def __init__(self, methods: Methods, family: Family, real: Any) -> None:
        self._methods = methods
        self._family = family
        self._real = real
        self.closing: tuple[Any, ...] = ()

    async def send(self, message: Message) -> None:
        self._methods.send(self._real, data_of(message))

    async def receive(self, timeout: float | None) -> Message:
        try:
            return message_of(self._methods.recv(self._real, timeout))
        except TimeoutError as error:
            return Message(str(error).encode(), "timeout")
        except self._family.exceptions.ConnectionClosed as error:
            if (closing := self._family.closing(error)) is None:
                raise
            return closing

    async def close(self) -> None:
        self._methods.close(self._real, *self.closing)


def message_of(data: object, text: bool | None = None) -> Message:
    """Return what an agent sends, or what the library received, as a message."""
    if isinstance(data, str):
        return Message(data.encode(), "text" if text is not False else "binary")
    return Message(bytes(data), "text" if text else "binary")  # type: ignore[call-overload]


def data_of(message: Message) -> Data:
    """Return a message as the library sends and returns it."""
    return message.data.decode() if message.kind == "text" else message.data


def cut(family: Family, connection: Any, error: BaseException) -> None:
    """Note on a connection that was never opened that the recorded one was cut."""
    protocol = connection.protocol
    if isinstance(error, family.exceptions.ConnectionClosed):
        protocol.state = family.states.CLOSED
        protocol.close_rcvd, protocol.close_sent = error.rcvd, error.sent
        protocol.close_rcvd_then_sent = error.rcvd_then_sent


def received(family: Family, connection: Any, message: Message, decode: bool | None) -> Data:
    """Return a received message in the type that the agent asks for.

    Raises:
        Exception: the server closed the connection, or the agent's timeout was over.
    """
    if message.kind == "timeout":
        raise TimeoutError(message.data.decode())
    if message.kind == "close":
        raise closed(family, connection, *message.closing)
    as_text = message.kind == "text" if decode is None else decode
    return message.data.decode() if as_text else message.data


def closed(
    family: Family, connection: Any, code: int, reason: str, *, by_agent: bool = False
) -> Exception:
    """Return the exception for a connection that was closed with a code.

    A connection that was never opened shows it from now on, too.
    """
    protocol, frame = connection.protocol, family.frames.Close(code, reason)
    if protocol.state is not family.states.CLOSED:
        cut(family, connection, family.closed(frame, frame, rcvd_first=not by_agent))
    rcvd, sent = protocol.close_rcvd, protocol.close_sent
    return family.closed(rcvd, sent, rcvd_first=bool(protocol.close_rcvd_then_sent))


def replayed(lib: Any, kind: type, uri: str, head: Head, socket: Socket) -> Any:
    """Return a connection of the library that was never opened."""
    family = Family()
    with crossing_seam(), rebuilding():
        protocol = lib.ClientProtocol(lib.parse_uri(uri))
    connection: Any = object.__new__(kind)
    protocol.state = family.states.OPEN
    protocol.subprotocol = _subprotocol(head.headers)
    connection.protocol = protocol
    connection.id, connection.logger = protocol.id, protocol.logger
    connection.debug, connection.latency = False, 0.0
    connection.request, connection.response = None, family.response(head)
    connection.pending_legacy_warning = False
    connection.tracefork = socket
    return connection


def _subprotocol(headers: Headers) -> str | None:
    chosen = (v for name, v in headers if name.lower() == "sec-websocket-protocol")
    return next(chosen, None)
