"""A server for websockets on loopback, whose handler is a function in a thread.

It needs the extra `websocket` of the testkit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus

from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

Handler = Callable[[ServerConnection], None]


@contextmanager
def websocket_server(handler: Handler, *, refused_with: str = "") -> Iterator[str]:
    """Yield the URL of a server that calls `handler` for each connection.

    With `refused_with`, it answers each handshake with 401 and this body.
    """

    def refuse(connection: ServerConnection, request: Request) -> Response | None:
        if not refused_with:
            return None
        return connection.respond(HTTPStatus.UNAUTHORIZED, refused_with)

    with serve(handler, "127.0.0.1", 0, process_request=refuse, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever, name="websocket-server")
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()
