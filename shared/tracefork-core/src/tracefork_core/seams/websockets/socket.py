"""One websocket of the agent, as exchanges of its session.

The handshake is an exchange: GET, answered by 101. Each message that the agent sends is one, too:
SEND, with the message as its body. The server's messages are the answer to the last message that
the agent had sent when it read them, one chunk each; those before the first belong to the
handshake. So a question to a model and what the model streams are one exchange, a replay and a fork
compare, answer and change it as any other, and nothing else needs to know of websockets.

An answer has no end of its own: it is complete when the agent sends the next message, or closes.
That takes no turn in the order of deliveries, because the agent does not see it. Sending is a
delivery: it returns in its recorded turn. Reading in one task and sending in another therefore
interleave in a replay as they did in the recording.

Pings and pongs are not recorded: the agent does not see them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.exchange.contract import SEND, Failure, Head, Headers, Live, Recorded, Request
from tracefork_core.exchange.contract import Session as Contract
from tracefork_core.exchange.current import crossing_seam, is_crossing_seam
from tracefork_core.seams.cancelling import Cancellable
from tracefork_core.seams.httpx.streams import GIVEN_UP
from tracefork_core.seams.websockets.messages import Decoder, Message, encoded
from tracefork_core.seams.websockets.rejoining import Rejoining, Sent
from tracefork_core.seams.websockets.waiting import Waiting

SWITCHING = 101
_ERROR = 400
_OK = Head(200, "OK", (("content-type", "text/event-stream"),))
_TEXT, _BINARY = "application/json", "application/octet-stream"


class Connection(Protocol):
    """A connection of a library."""

    async def send(self, message: Message) -> None: ...

    async def receive(self, timeout: float | None) -> Message:
        """Return the next message, the server's close frame, or that a timeout was over."""

    async def close(self) -> None: ...


class Library(Protocol):
    """What a websocket needs of its library. `name` goes onto the tape."""

    name: str

    async def connect(self) -> tuple[Connection, Head]:
        """Open a connection, and return it and the answer to its handshake."""

    def failure(self, error: BaseException) -> Failure: ...

    def exception(self, failure: Failure) -> Exception: ...

    def rejection(self, error: BaseException) -> tuple[Head, bytes] | None:
        """Return the response that an exception of the handshake carries, if it does."""

    def rejected(self, head: Head, body: bytes) -> Exception:
        """Return the exception for a server that answered the handshake with a response."""


class Socket:
    """One websocket under a session.

    Attributes:
        session: the session that it belongs to.
        connection: the open connection; None while the tape answers.
        closed: the code and the reason that the server closed it with.
    """

    def __init__(
        self, session: Contract, url: str, headers: Headers, library: Library, waiting: Waiting
    ) -> None:
        self.connection: Connection | None = None
        self.closed: Message | None = None
        self.session = session
        self._url = url
        self._headers = headers
        self._library = library
        self._waiting = waiting
        self._live: Live | None = None
        self._answers: deque[Recorded] = deque()
        self._decoder = Decoder()
        self._arrived: deque[Message] = deque()
        self._held: Message | None = None
        self._failure: Failure | None = None
        self._is_over = False
        self._rejoining = Rejoining(url)
        # Threads: what is read must not go to an exchange that the next send completes meanwhile.
        self._lock = threading.RLock()

    async def open(self) -> Head:
        """Make the handshake, and return its answer.

        Raises:
            Exception: that of the library, live or as recorded.
        """
        asked = Request("GET", self._url, self._headers, b"", self._library.name)
        answer = self.session.open(asked)
        if answer is None:
            raise UsageError(f"tracefork: {self._url} is telemetry, and no websocket of the run.")
        if answer.is_live:
            return await self._connect(answer)
        head = await self._waiting.head(answer)
        if isinstance(head, Failure):
            raise self._library.exception(head)
        if head.status != SWITCHING:
            raise self._library.rejected(head, await self._body(answer))
        self._answers.append(answer)
        return head

    async def _connect(self, live: Live) -> Head:
        asking = Cancellable(self._library.connect())
        try:
            with crossing_seam():
                self.connection, head = await asking
            await self._waiting.quiet(live)
        except GIVEN_UP:
            live.cancel(asking.rounds)
            raise
        except Exception as error:
            await self._waiting.quiet(live)
            rejection = self._library.rejection(error)
            if rejection is None:
                live.fail(self._library.failure(error))
                raise
            head, body = rejection
            live.head(head)
            if body:
                live.chunk(body)
            live.end()
            raise
        live.head(head)
        self._live = live
        return head

    async def _body(self, answer: Recorded) -> bytes:
        pieces = []
        while isinstance(piece := await self._waiting.chunk(answer), bytes):
            pieces.append(piece)
        return b"".join(pieces)

    async def send(self, message: Message) -> None:
        """Send a message, live or as recorded.

        Raises:
            Exception: that of the library.
        """
        kind = _TEXT if message.kind == "text" else _BINARY
        asked = Request(
            SEND, self._url, (("content-type", kind),), message.data, self._library.name
        )
        try:
            answer = self.session.open(asked)
            if answer is None:
                return
            if answer.is_live:
                await self._send(answer, message)
            else:
                await self._send_recorded(answer, message)
        finally:
            self._waiting.changed()  # What reads sees an error of the session, too.

    async def _send(self, live: Live, message: Message) -> None:
        if live.sends is not None:
            message = Message(live.sends.body, message.kind)
        try:
            with crossing_seam():
                connection = self.connection or await self._rejoin(message)
                await connection.send(message)
            await self._waiting.quiet(live)
        except GIVEN_UP:
            live.cancel()
            raise
        except Exception as error:
            await self._waiting.quiet(live)
            live.fail(self._library.failure(error))
            if isinstance(error, TraceforkError):
                raise self.session.poison_with(error) from None
            raise
        with self._lock:
            if self._live is not None:
                self._live.complete()
            live.head(_OK)
            self._live = live
        self._rejoining.sent.append(Sent(message))

    async def _rejoin(self, message: Message) -> Connection:
        """Open a connection in the middle of a fork, and bring its server to the same place."""
        again = self._rejoining.again(message)
        connection, _ = await self._library.connect()
        for sent in again:
            if sent.message is not None:
                await connection.send(sent.message)
            for _ in range(sent.answers):
                await connection.receive(self._rejoining.patience)
        self.connection = connection
        return connection

    async def _send_recorded(self, answer: Recorded, message: Message) -> None:
        self._rejoining.sent.append(Sent(message))
        head = await self._waiting.head(answer)
        if isinstance(head, Failure):
            raise self._library.exception(head)
        if head.status >= _ERROR:
            self._arrived.append(_error_message(head, await self._body(answer)))
        else:
            self._answers.append(answer)

    async def receive(self, timeout: float | None = None) -> Message:
        """Return the next message, the server's close frame, or that a timeout was over.

        Raises:
            Exception: that of the library, for a connection that was cut.
        """
        while True:
            seen = self._waiting.changes
            self.session.check()
            if self.closed is not None:
                return self.closed
            if self._failure is not None:
                raise self._library.exception(self._failure)
            if self._answers or self._arrived:
                message = await self._recorded()
                if message is not None:
                    return message
            elif self._live is not None:
                return await self._receive(self._live, timeout)
            elif self._is_over:
                return Message(b"1000", "close")
            else:
                await self._waiting.change(seen)

    async def _recorded(self) -> Message | None:
        """Return the next recorded message; None where the first answer has no more."""
        while not self._arrived:
            answer = self._answers[0]
            piece = await self._waiting.chunk(answer)
            if isinstance(piece, bytes):
                self._arrived.extend(self._decoder.feed(piece))
                continue
            if self._answers and self._answers[0] is answer:
                self._answers.popleft()
            if isinstance(piece, Failure):
                self._failure = piece
                raise self._library.exception(piece)
            return None
        self._rejoining.received()
        return self._noted(self._arrived.popleft())

    async def _receive(self, live: Live, timeout: float | None) -> Message:
        connection = self.connection
        assert connection is not None
        try:
            if self._held is None:
                with crossing_seam():
                    self._held = await connection.receive(timeout)
            # A read that is cancelled from here on leaves the message to the next one.
            while True:
                await self._waiting.quiet(self._live or live)
                with self._lock:
                    if live is self._live:
                        live.chunk(encoded(self._held))
                        break
                    live = self._live or live
        except GIVEN_UP:
            raise
        except Exception as error:
            await self._waiting.quiet(live)
            live.fail(self._library.failure(error))
            raise
        message, self._held = self._held, None
        return self._noted(message)

    def _noted(self, message: Message) -> Message:
        if message.kind == "close":
            self.closed = message
            self._waiting.changed()
            if self._live is not None:
                self._live.complete()
        return message

    async def close(self) -> None:
        """Close it. What reads meanwhile sees its end."""
        if self.connection is not None:
            with crossing_seam():
                await self.connection.close()
        with self._lock:
            if self._live is not None:
                self._live.complete()
        self._is_over = True
        self._waiting.changed()

    async def read_rest(self) -> None:
        """Read what the tape still holds of the messages before the last that was sent."""
        while self._answers:
            await self._recorded()
            self._arrived.clear()

    async def closing(self) -> None:
        """Wait until the agent or the server has closed it, or the connection was cut."""
        while not (self._is_over or self.closed is not None or self._failure is not None):
            await self._waiting.change(self._waiting.changes)


def under_session(socket: Socket | None) -> Socket | None:
    """Return a socket whose session decides about what happens here; None for a live call of it.

    A connection outlives its session if it is open. One that was never opened has nothing else.
    """
    if socket is None or is_crossing_seam():
        return None
    return socket if socket.session.active or socket.connection is None else None


def unopened_class(kind: Any, methods: Iterable[Callable[..., Any]]) -> Any:
    """Return the class of connections that were never opened.

    They keep their methods when a session ends and takes its patches back.
    """
    body = {method.__name__: method for method in methods}
    return type(kind.__name__, (kind,), {**body, "__module__": kind.__module__})


def unopened(socket: Socket | None) -> Socket | None:
    """Return a socket that has no connection, because the tape answers."""
    return socket if socket is not None and socket.connection is None else None


def _error_message(head: Head, body: bytes) -> Message:
    """Return an error that a fork gives as a response of HTTP as the message of an error."""
    import json

    try:
        document = json.loads(body)
    except ValueError:
        document = {}
    fields = document if isinstance(document, dict) else {}
    return Message(json.dumps({**fields, "type": "error", "status": head.status}).encode())
