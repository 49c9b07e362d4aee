"""Run the proxy in a thread beside the program that uses it."""

from __future__ import annotations

import socket
import threading
from contextvars import Context
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Session
from tracefork_core.exchange.current import outside
from tracefork_core.proxy.app import ProxyApp
from tracefork_core.proxy.door import Door
from tracefork_core.proxy.routes import Routes
from tracefork_core.proxy.upstream import Upstream

if TYPE_CHECKING:
    from types import TracebackType

LOOPBACK = "127.0.0.1"
_WAITING = 1024
"""Connections that may wait until they are accepted."""
_LARGEST_MESSAGE = 1 << 30
"""Bytes of a message on a websocket: the upstream server sets the limit."""
_KEEP_ALIVE = 3600
"""Seconds that an idle connection stays open: a client that reuses one must not find it closed."""


class ProxyServer:
    """A proxy that answers while its `with` block runs. `address` is its base URL.

    With `path`, it also listens on a socket in the file system.
    """

    def __init__(
        self,
        session: Session,
        routes: Routes,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        path: Path | None = None,
    ) -> None:
        import uvicorn

        self._listening = [_listen(host, port)]
        self.port: int = self._listening[0].getsockname()[1]
        if path is not None:
            self._listening.append(_listen_at(path))
        self.host = host
        self._upstream = Upstream()
        app = ProxyApp(session, routes, Door(host, self.port), self._upstream)
        config = uvicorn.Config(
            app,
            loop="asyncio",
            ws="websockets-sansio",
            ws_max_size=_LARGEST_MESSAGE,
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=0,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="tracefork-proxy", daemon=True)

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK if self.host == '0.0.0.0' else self.host}:{self.port}"  # noqa: S104

    def __enter__(self) -> Self:
        # In an empty context: the thread is no part of the run that it serves.
        Context().run(self._thread.start)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._thread.join()

    def _serve(self) -> None:
        with outside():
            self._server.run(sockets=self._listening)


def _listen(host: str, port: int) -> socket.socket:
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it. asyncio sets it only where the protocol is spelled out,
        # and without it the second piece of a response waits 40 ms for the client's kernel.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((host, port))
        listening.listen(_WAITING)
    except (OSError, OverflowError) as error:
        listening.close()
        raise UsageError(
            f"tracefork: port {port} of {host} cannot be used: {error}. Choose another with "
            "--port, or leave it out to get a free one."
        ) from error
    return listening


def _listen_at(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(_WAITING)
    return listening
