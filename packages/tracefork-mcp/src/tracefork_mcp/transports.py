"""The transports that a session puts in place of those of `mcp`.

A recording connects as without a session, and the connection is an exchange, `connect`: a server
that cannot be started fails in the same way in a replay. A replay connects to nothing. A fork
connects when the first message needs it, and first repeats the handshake that the tape answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tracefork_core.adapters import (
    Failure,
    Head,
    Live,
    Request,
    begin_step,
    crossing_seam,
    current_step,
    end_step,
    is_crossing_seam,
    mask_secrets_of,
    session_here,
)
from tracefork_mcp import messages
from tracefork_mcp.asked import Outbox, check_loop
from tracefork_mcp.failures import exception_of, failure_of
from tracefork_mcp.server import Server
from tracefork_mcp.tap import Tap

Generator = Callable[..., AsyncIterator[Any]]

HTTP = "streamable_http_client"
_CONNECTED = Head(200, "OK", (("content-length", "0"),))


async def connected(
    name: str, original: Generator, *args: Any, **options: Any
) -> AsyncIterator[Any]:
    """Yield the streams of a connection, as the transport `name` does."""
    target = args[0] if args else options.get("server") or options.get("url")
    session = None if is_crossing_seam() else session_here()
    real = asynccontextmanager(original)(*args, **options)
    if session is None:
        async with real as streams:
            yield streams
        return
    # A client of streamable HTTP connects with its first message.
    async with tapped(real, session, Server(target), connects=name != HTTP) as streams:
        is_short = name == HTTP and messages.VERSION == 1 and len(streams) == 2
        yield (*streams, lambda: None) if is_short else streams  # It has no HTTP session.


@asynccontextmanager
async def tapped(real: Any, session: Any, server: Server, *, connects: bool) -> AsyncIterator[Any]:
    """Connect with the real transport, or with none, and yield what the client gets.

    `connects` tells whether the transport connects when it is entered.
    """
    check_loop()
    mask_secrets_of(server.environment)
    connecting = await _connecting(session, server) if connects else None
    # In a child process, the tape is the parent's: whether this is a replay, its answers say.
    is_live = session.source is None if connecting is None else connecting.is_live
    if is_live:
        async with _recorded(real, session, server, connecting) as streams:
            yield streams
    else:
        if connecting is not None:
            head = await connecting.areceive_head()
            if isinstance(head, Failure):
                raise exception_of(head)
            await connecting.areceive_chunk()
        async with _late(real, session, server) as streams:
            yield streams


async def _connecting(session: Any, server: Server) -> Any:
    step = begin_step("mcp", f"{server.name}.connect", parent=current_step.get())
    token = current_step.set(step)
    try:
        return session.open(Request("connect", server.url({}), (), b"", "mcp", "read"))
    finally:
        current_step.reset(token)
        end_step(step)


@asynccontextmanager
async def _recorded(
    real: Any, session: Any, server: Server, connecting: Live | None
) -> AsyncIterator[Any]:
    try:
        with crossing_seam():
            read, write, *more = await real.__aenter__()
    except Exception as error:
        if connecting is not None:
            await connecting.quiet()
            connecting.fail(failure_of(error))
        raise
    except BaseException:
        if connecting is not None:
            connecting.cancel()
        raise

    async def stream() -> Any:
        return write

    tap = Tap(session, server, stream)
    try:
        if connecting is not None:
            await connecting.quiet()
            connecting.head(_CONNECTED)
            await connecting.quiet()
            connecting.end()
        tap.start(tap.feed(read), has_lane=True)
        yield (tap.inbox, Outbox(tap), *more)
    except BaseException as error:
        tap.begin_closing()
        try:
            with crossing_seam():
                is_swallowed = await real.__aexit__(type(error), error, error.__traceback__)
        except Exception as raised:
            if not isinstance(error, Exception):  # It has cancelled the client.
                await tap.break_off(failure_of(raised))
            raise
        if not is_swallowed:
            raise
    else:
        tap.begin_closing()
        with crossing_seam():
            await real.__aexit__(None, None, None)
    finally:
        await tap.close()


@asynccontextmanager
async def _late(real: Any, session: Any, server: Server) -> AsyncIterator[Any]:
    connection = _Late(real)
    tap = connection.tap = Tap(session, server, connection.stream)
    try:
        # As in the real one: an error cancels the client and comes in a group.
        async with anyio.create_task_group() as group:
            tap.on_error = lambda error: group.start_soon(_raise, error)
            tap.start(tap.feed(), has_lane=True)
            yield tap.inbox, Outbox(tap)
    finally:
        tap.begin_closing()
        await connection.close()
        await tap.close()


class _Late:
    """A connection that is made when it is first needed."""

    tap: Tap

    def __init__(self, real: Any) -> None:
        self._real = real
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._ready: asyncio.Future[Any] | None = None

    async def stream(self) -> Any:
        """Return the stream to the server.

        Raises:
            Exception: what the real transport raised when it connected.
        """
        if self._ready is None:
            loop = asyncio.get_running_loop()
            self._ready = loop.create_future()
            with crossing_seam():
                self._task = loop.create_task(self._run(self._ready))
        return await asyncio.shield(self._ready)

    async def _run(self, ready: asyncio.Future[Any]) -> None:
        try:
            async with self._real as (read, write, *_):
                self.tap.start(self.tap.feed(read), has_lane=True)
                await self.tap.repeat_handshake(write)
                ready.set_result(write)
                await self._over.wait()
        except Exception as error:  # noqa: BLE001 - it is raised where the client runs
            inner = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            if ready.done():
                self.tap.on_error(inner)
            else:
                ready.set_exception(error)

    async def close(self) -> None:
        """End the connection, if it was made."""
        self._over.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)


async def _raise(error: BaseException) -> None:
    raise error
