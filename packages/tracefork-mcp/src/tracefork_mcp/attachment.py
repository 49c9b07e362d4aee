"""Record a transport of your own, and any transport in a session with ambient=False."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from tracefork_core.adapters import is_crossing_seam, session_here
from tracefork_mcp.server import Server
from tracefork_mcp.transports import tapped


@asynccontextmanager
async def attach(transport: AbstractAsyncContextManager[Any], *, name: str) -> AsyncIterator[Any]:
    """Connect with a transport under the session that is open then, and yield its streams.

        async with attach(my_transport(address), name="files") as streams:
            async with ClientSession(*streams) as session: ...

    A replay does not enter the transport. Outside a session this only enters it.

    Args:
        transport: an async context manager that yields a stream to read and one to write.
        name: the name of the server on the tape, until it says its own.
    """
    session = None if is_crossing_seam() else session_here()
    if session is None:
        async with transport as streams:
            yield streams
    else:
        async with tapped(transport, session, Server(name=name), connects=True) as streams:
            yield streams
