"""One accepted connection: it answers requests in order."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import cast

from tracefork_testkit.http1 import (
    BadRequestError,
    Delivery,
    ReceivedRequest,
    RequestReader,
    json_delivery,
)
from tracefork_testkit.script import Hold

Answer = Callable[[ReceivedRequest], "Delivery | Awaitable[Delivery]"]
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Connection(asyncio.Protocol):
    """Answer the requests of one connection, one after another."""

    def __init__(self, number: int, answer: Answer, open_connections: set[Connection]) -> None:
        self._reader = RequestReader(number)
        self._answer = answer
        self._open = open_connections
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Disable Nagle's delay, so that each write is sent at once."""
        self._transport = cast(asyncio.Transport, transport)
        self._open.add(self)
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the answer in progress."""
        self._open.discard(self)
        self._transport = None
        self._writable.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        """Pause an answer whose reader is slow."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Resume writing."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Buffer bytes; answer the next request unless one is in progress."""
        self._reader.buffer += data
        if self._task is None:
            self._answer_all()

    def eof_received(self) -> None:
        """Close after the client."""

    def abort(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _answer_all(self) -> None:
        while self._transport is not None:
            try:
                request = self._reader.next()
            except BadRequestError as error:
                self._write_whole(json_delivery(400, {"error": {"message": str(error)}}))
                self._transport.close()
                return
            if request is None:
                if self._reader.expects_continue:
                    self._reader.expects_continue = False
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            delivery = self._answer(request)
            if isinstance(delivery, Delivery) and delivery.at_once:
                empty = request.method == "HEAD" or delivery.status in (204, 304)
                self._write_whole(delivery, head_only=empty)
                self._close_if_asked()
                continue
            self._task = asyncio.get_running_loop().create_task(self._deliver(delivery))
            self._task.add_done_callback(self._delivered)
            return

    def _delivered(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if task.exception() is not None:
            self.abort()
        task.result()
        self._close_if_asked()
        self._answer_all()

    def _close_if_asked(self) -> None:
        if self._reader.close and self._transport is not None:
            self._transport.close()

    def _write_whole(self, delivery: Delivery, *, head_only: bool = False) -> None:
        assert self._transport is not None
        write = self._transport.write
        if head_only or not delivery.chunked:
            head = delivery.head()
            write(head if head_only else head + b"".join(delivery.chunks))
            return
        write(delivery.head())
        for frame in delivery.frames():
            write(frame)
        write(b"0\r\n\r\n")

    async def _deliver(self, answer: Delivery | Awaitable[Delivery]) -> None:
        delivery = answer if isinstance(answer, Delivery) else await answer
        if delivery.delay:
            await asyncio.sleep(delivery.delay)
        if delivery.ending == "silence":
            await asyncio.get_running_loop().create_future()
        await self._hold(delivery.hold, 0)
        if delivery.ending != "complete" and delivery.sent is None:
            self._break(delivery)
            return
        await self._write(delivery.head())
        for index, frame in enumerate(delivery.frames()):
            if delivery.ending != "complete" and index == delivery.sent:
                break
            if delivery.chunk_delay and index:
                await asyncio.sleep(delivery.chunk_delay)
            await self._write(frame)
            await self._hold(delivery.hold, index + 1)
        if delivery.ending != "complete":
            self._break(delivery)
        elif delivery.chunked:
            await self._write(b"0\r\n\r\n")

    async def _write(self, data: bytes) -> None:
        await self._writable.wait()
        if self._transport is not None:
            self._transport.write(data)

    async def _hold(self, hold: Hold | None, chunks: int) -> None:
        if hold is None or hold.after_chunks != chunks:
            return
        loop, released = asyncio.get_running_loop(), asyncio.Event()
        hold.reached.set()
        hold.on_release(lambda: _wake(loop, released))
        await released.wait()

    def _break(self, delivery: Delivery) -> None:
        if self._transport is None:
            return
        if delivery.ending == "misframed":
            self._transport.write(b"zz\r\nnot a chunk\r\n")
        if delivery.ending == "reset":
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self._transport.abort()
        else:
            self._transport.close()


def _wake(loop: asyncio.AbstractEventLoop, released: asyncio.Event) -> None:
    # The server may have been stopped before the test released its hold.
    if not loop.is_closed():
        loop.call_soon_threadsafe(released.set)
