"""Serve an app with uvicorn in a thread of this process, and ask it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn


@contextmanager
def served(app: Any, **options: Any) -> Iterator[str]:
    """Yield the URL of an ASGI app under uvicorn."""
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)


def kept(folder: Path, count: int) -> list[Path]:
    """Return the tapes in a folder, oldest first, as soon as there are so many.

    A client may read the whole response before the tape is written. Nothing but tapes and marks may
    be there in the end.
    """
    until = time.monotonic() + 10
    while len(found := sorted(folder.glob("*.tape"))) < count and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.05)  # A tape too many would come now.
    assert {path.suffix for path in folder.iterdir()} <= {".tape", ".mark"}
    assert len(found) == len(list(folder.glob("*.tape"))) == count
    return found
