"""A server for websockets on loopback, whose handler is a function in a thread.

It needs the extra `websocket` of the testkit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from ssl import SSLContext
from typing import Any

from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

Handler = Callable[[ServerConnection], None]


@contextmanager
def websocket_server(
    handler: Handler, *, refused_with: str = "", tls: SSLContext | None = None
) -> Iterator[str]:
    """Yield the URL of a server that calls `handler` for each connection.

    With `refused_with`, it answers each handshake with 401 and this body.
    """
    options: dict[str, Any] = {
        "process_request": refuse_with(refused_with),
        "max_size": None,
        "ssl": tls,
    }
    with serve(handler, "127.0.0.1", 0, **options) as server:
        thread = threading.Thread(target=server.serve_forever, name="websocket-server")
        thread.start()
        try:
            yield f"{'wss' if tls else 'ws'}://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()


def refuse_with(body: str) -> Callable[[ServerConnection, Request], Response | None]:
    """Return what refuses a handshake with this body, or lets it pass if it is empty."""

    def refuse(connection: ServerConnection, request: Request) -> Response | None:
        return connection.respond(HTTPStatus.UNAUTHORIZED, body) if body else None

    return refuse
