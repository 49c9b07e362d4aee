"""The streams between a client and its transport: each message crosses here, and is an exchange.

A request of the client is an exchange. Its chunks are the messages of the server up to the
response, one JSON line each. What the client sends without expecting an answer (notifications, and
responses to the server's own requests) is an exchange with an empty answer.

A message of the server belongs to the exchange whose response or progress it is, or that subscribed
to it. Any other one, such as a log line or a request of the server, belongs to the oldest exchange
that is still open. If none is open, it is an exchange of its own, `receive`. Nothing in a replay
asks for those, so the tap itself asks for all of a connection at its beginning, on a lane of their
own.

`send` runs in the task of the caller, so an exchange has the caller's lane and step. All that comes
in goes through one stream to the client, whether it is live or recorded.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import anyio

from tracefork_core import TraceforkError
from tracefork_core.adapters import (
    Failure,
    Head,
    Recorded,
    Request,
    answering_tape,
    begin_step,
    crossing_seam,
    current_step,
    end_step,
    fork_point,
    lane_here,
)
from tracefork_mcp import messages
from tracefork_mcp.asked import RECEIVE, Asked, check_loop, same_id
from tracefork_mcp.failures import CLOSED, exception_of, is_end
from tracefork_mcp.messages import Id, Message
from tracefork_mcp.server import Server

_JSON = ("content-type", "application/json")
_ACCEPTED = Head(202, "Accepted", (("content-length", "0"),))
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError)


class Tap:
    """The two streams of one connection.

    Args:
        session: the session that the connection belongs to.
        server: what is known about the server.
        stream: returns the stream to the server. It is called before each message that is sent.

    Attributes:
        inbox: the stream that the client reads.
        handshake: what the tape answered and a server must have heard before anything else.
        on_error: called with an error of the transport, to raise it where the client runs.
    """

    def __init__(self, session: Any, server: Server, stream: Callable[[], Awaitable[Any]]) -> None:
        self.session = session
        self.server = server
        self._stream = stream
        self._deliver, self.inbox = anyio.create_memory_object_stream[Any](math.inf)
        self.on_error: Callable[[Exception], object] = lambda _: self._end()
        self.handshake: list[tuple[Message, Any]] = []
        self._repeated: dict[Id, asyncio.Future[None]] = {}
        self._open: dict[Id, Asked] = {}
        self._of_server: dict[Id, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    # What the client sends.

    async def send(self, item: Any) -> None:
        """Send a message of the client, or answer it from the tape.

        Raises:
            TraceforkError: the session has failed, or fails with this message.
        """
        if self._is_closed:
            raise anyio.ClosedResourceError
        check_loop()
        message = messages.read(item)
        if not self.session.active:
            await self._forward(item)
        elif messages.is_request(message):
            await self._ask(message, item)
        elif message.get("method") == messages.CANCELLED:
            await self._give_up(message, item)
        else:
            await self._tell(message, item)

    async def _ask(self, message: Message, item: Any) -> None:
        step = begin_step(*self.server.step(message), parent=current_step.get())
        asked = Asked(message["id"], message["method"], messages.token_of(message), step)
        token = current_step.set(step)
        try:
            answer = self.session.open(self._request(message["method"], message))
        except TraceforkError as error:
            end_step(step, error)
            raise
        finally:
            current_step.reset(token)
        if answer is None:
            await self._forward(item)
            return
        if not answer.is_live:
            self._remember(message, item)
            self.start(self._replay(asked, answer))
            return
        asked.live = answer
        self._open[asked.id] = asked
        if answer.sends is not None:
            item = messages.built(messages.edited(message, answer.sends.body), like=item)
        try:
            await self._forward(item)
        except Exception as error:
            self._open.pop(asked.id, None)
            await asked.end(Failure(type(error).__name__, str(error)))
            end_step(step, error)
            raise

    async def _tell(self, message: Message, item: Any) -> None:
        method = message.get("method") or self._of_server.pop(message["id"], "response")
        try:
            answer = self.session.open(self._request(method, message))
            if answer is None:
                await self._forward(item)
            elif answer.is_live:
                await self._forward(item)
                await answer.quiet()
                answer.head(_ACCEPTED)
                await answer.quiet()
                answer.end()
            else:
                self._remember(message, item)
                await answer.areceive_head()
                await answer.areceive_chunk()
        except TraceforkError:
            # The client would answer the server with an error. The session raises it again.
            if not messages.is_response(message):
                raise

    async def _give_up(self, message: Message, item: Any) -> None:
        """Tell a server that waits for nothing. When a client does that is a matter of time."""
        if (message.get("params") or {}).get("requestId") in self._open:
            await self._forward(item)

    def _request(self, method: str, message: Message) -> Request:
        url, effect = self.server.url(message), self.server.effect(message)
        return Request(method, url, (_JSON,), messages.compared(message), "mcp", effect)

    def _remember(self, message: Message, item: Any) -> None:
        if messages.is_handshake(message):
            self.handshake.append((message, item))

    async def _forward(self, item: Any) -> None:
        stream = await self._stream()
        with crossing_seam():
            await stream.send(item)

    async def repeat_handshake(self, stream: Any) -> None:
        """Send a server what the tape has answered, before it gets its first message."""
        for number, (message, item) in enumerate(self.handshake):
            if not messages.is_request(message):
                await stream.send(item)
                continue
            private = f"tracefork-{number}"
            answered = self._repeated[private] = asyncio.get_running_loop().create_future()
            await stream.send(messages.built({**message, "id": private}, like=item))
            await answered

    # What the server sends.

    async def feed(self, stream: Any = None) -> None:
        """Record and deliver what the server sends, until it closes the connection.

        Without a stream, deliver what the tape holds that nothing asked for.
        """
        if stream is None:
            await self._feed_recorded()
            return
        with suppress(*_GONE):
            async for item in stream:
                await self._arrive(item)
        for answered in self._repeated.values():
            if not answered.done():
                answered.set_exception(ConnectionError("the server closed the connection"))
        if self._is_closed or not self.session.active:
            self._end()
            return
        with suppress(TraceforkError):
            if not self._open:
                self._open[RECEIVE] = self._receive()
            first = next(iter(self._open.values()))
            if first.live is not None:
                await first.live.quiet()
        # An error of the transport ends the stream first, and cancels the client next.
        if not self._is_closed:
            await self.break_off(CLOSED)
            self._end()

    async def break_off(self, failure: Failure) -> None:
        """Record that the connection ended by itself, in what is open or in an exchange."""
        with suppress(TraceforkError):
            asked = list(self._open.values()) or [self._receive()]
            self._open.clear()
            for one in asked:
                await one.end(failure)
                end_step(one.step, failure.kind)

    async def _feed_recorded(self) -> None:
        lane, tape, until = lane_here(), answering_tape(), fork_point()
        if lane is None or tape is None:
            return
        for exchange in tape.exchanges:
            is_ours = exchange.method == RECEIVE and exchange.lane == lane.name
            if is_ours and (until is None or exchange.n < until):
                asked = Asked(0, RECEIVE)
                try:
                    request = Request(RECEIVE, exchange.url, (), b"", "mcp", "read")
                    answer = self.session.open(request)
                except TraceforkError:
                    return  # The session raises it again.
                await self._replay(asked, answer)

    def _receive(self) -> Asked:
        request = Request(RECEIVE, self.server.url({}), (), b"", "mcp", "read")
        return Asked(0, RECEIVE, live=self.session.open(request))

    async def _arrive(self, item: Any) -> None:
        message = None if isinstance(item, Exception) else messages.read(item)
        if message is not None and messages.is_response(message):
            answered = self._repeated.pop(message.get("id") or 0, None)
            if answered is not None:
                answered.set_result(None)
                return
        if self.session.active:
            with suppress(TraceforkError):  # The session raises it again.
                await self._record(item, message)
        self._note(message)
        self._hand_on(item)

    async def _record(self, item: Any, message: Message | None) -> None:
        asked, is_own = self._belongs_to(message)
        is_received = asked is None
        if asked is None:
            asked = self._receive()
        if message is None:
            await asked.hear(messages.unreadable(item))
        else:
            await asked.hear(messages.line(message, is_own=is_own))
        if is_received:
            await asked.end()
        elif is_own and message is not None and messages.is_response(message):
            await asked.end()
            self._answered(asked, message)

    def _belongs_to(self, message: Message | None) -> tuple[Asked | None, bool]:
        """Return the exchange that a message of the server belongs to, and whether by its id."""
        if message is not None:
            by_id = None
            if messages.is_response(message):
                by_id = self._open.get(same_id(message.get("id")))
            elif "id" not in message and (token := messages.token_of(message)) is not None:
                known = (one for one in self._open.values() if one.token == token)
                by_id = next(known, None)
            elif "id" not in message:
                by_id = self._open.get(messages.subscription_of(message) or 0)
            if by_id is not None:
                return by_id, True
        return next(iter(self._open.values()), None), False

    # What the tape holds.

    async def _replay(self, asked: Asked, answer: Recorded) -> None:
        """Deliver a recorded answer, each message in its turn."""
        buffer = b""
        try:
            piece: Head | Failure | bytes | None = await answer.areceive_head()
            while piece is not None:
                if isinstance(piece, Failure):
                    end_step(asked.step, piece.kind)
                    if is_end(piece):
                        self._end()
                    else:
                        self.on_error(exception_of(piece))
                    return
                if isinstance(piece, bytes):
                    *lines, buffer = (buffer + piece).split(b"\n")
                    for data in lines:
                        self._deliver_line(asked, data)
                piece = await answer.areceive_chunk()
            self._deliver_line(asked, buffer)
        except asyncio.CancelledError:
            answer.close()
            raise
        except TraceforkError as error:
            end_step(asked.step, error)
            if asked.method != RECEIVE:
                self._hand_on(messages.refusal(asked.id, error))

    def _deliver_line(self, asked: Asked, data: bytes) -> None:
        if not data.strip():
            return
        item = messages.from_line(data, asked.id, asked.token)
        message = None if isinstance(item, Exception) else messages.read(item)
        if message is not None and messages.is_response(message):
            self._answered(asked, message)
        self._note(message)
        self._hand_on(item)

    # Both.

    def _answered(self, asked: Asked, message: Message) -> None:
        self._open.pop(asked.id, None)
        self.server.hear(asked.method, message)
        error = message.get("error")
        end_step(asked.step, str(error.get("message")) if isinstance(error, dict) else None)

    def _note(self, message: Message | None) -> None:
        if message is not None and messages.is_request(message):
            self._of_server[message["id"]] = message["method"]

    def _hand_on(self, item: Any) -> None:
        with suppress(*_GONE):  # The client has left.
            self._deliver.send_nowait(item)

    def _end(self) -> None:
        self._deliver.close()

    def start(self, work: Coroutine[Any, Any, None], *, has_lane: bool = False) -> None:
        """Run something beside the client, until `close`. What has no lane opens no exchange."""
        loop = asyncio.get_running_loop()
        if has_lane:
            task = loop.create_task(work)
        else:
            with crossing_seam():
                task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def begin_closing(self) -> None:
        """Note that it is the client that ends the connection, not the server."""
        self._is_closed = True

    async def close(self) -> None:
        """End what is still open."""
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        for asked in self._open.values():
            if asked.live is not None:
                asked.live.cancel()
                end_step(asked.step, "Cancelled")
        self._open.clear()
        self._end()
        self.inbox.close()
