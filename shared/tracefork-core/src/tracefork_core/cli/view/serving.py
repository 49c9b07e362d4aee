"""Start the server of `tracefork view`, and print its address."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from tracefork_core.cli.view.folder import Folder
from tracefork_core.cli.view.jobs import Jobs
from tracefork_core.errors import UsageError

HOST = "127.0.0.1"


def serve(
    folder: Path,
    tape: str | None,
    *,
    port: int,
    allow_run: bool,
    told: Callable[[str, int], None],
) -> None:
    """Serve a folder until Ctrl-C.

    Args:
        folder: the folder.
        tape: the name of the tape that is shown first; None for the list.
        port: the port; 0 for a free one.
        allow_run: whether the page may start commands.
        told: called with the address and the port before the first request is answered.

    Raises:
        UsageError: the port is taken, or the extra is not installed.
    """
    try:
        import uvicorn

        from tracefork_core.cli.view.door import Door
        from tracefork_core.cli.view.routes import Server
        from tracefork_core.cli.view.running import Running
    except ImportError as error:
        raise UsageError(
            f"tracefork: view needs an extra ({error.name} is not installed): "
            "pip install 'tracefork-core[view]'."
        ) from error
    listening = _listen(port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    listed, jobs = Folder(folder), Jobs(Path.cwd())
    server = Server(listed, Running(listed, jobs) if allow_run else None)
    app = Door(server.app, port=port, token=token)
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=False,
        # Viewers hold their streams open: they are cut off at once.
        timeout_graceful_shutdown=0,
    )
    place = "/" if tape is None else "/run"
    query = urlencode({"token": token} if tape is None else {"tape": tape, "token": token})
    told(f"http://{HOST}:{port}{place}?{query}", port)
    sys.stdout.flush()
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        jobs.close()


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it; asyncio does not set it for them. Without it a row that
        # is sent in two pieces waits for the browser's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((HOST, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        raise UsageError(
            f"tracefork: port {port} of {HOST} cannot be used: {error}. Choose another with "
            "--port, or leave it out to get a free one."
        ) from error
    return listening
