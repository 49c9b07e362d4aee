"""Serve an MCP server over HTTP on a real socket, from a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def serving(app: Any) -> Iterator[Served]:
    """Serve an app until the block or `stop` ends it."""
    served = Served(app)
    try:
        yield served
    finally:
        served.stop()


class Served:
    """A running HTTP server. `url` is its address, also when it has stopped."""

    def __init__(self, app: Any, ws: str = "none") -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.requests: list[str] = []
        options: dict[str, Any] = {"log_level": "error", "timeout_graceful_shutdown": 1}
        config = uvicorn.Config(self._counted(app), ws=ws, lifespan="auto", **options)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the server did not start"
            time.sleep(0.005)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def _counted(self, app: Any) -> Any:
        async def counted(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.requests.append(scope["method"])
            await app(scope, receive, send)

        return counted

    def stop(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
