"""A listener that counts its connections, and a tape without exchanges."""

from __future__ import annotations

import gc
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tracefork_core import record


class Listener:
    """Accept connections on loopback and count them."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._accepted = 0
        self._own = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def accepted(self) -> int:
        """The number of connections, including any that still wait in the queue."""
        self._own += 1
        with socket.create_connection(self.address) as last:
            assert last.recv(1)  # All connections before this one have been accepted.
        return self._accepted - self._own

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._accepted += 1
            with suppress(OSError):  # The peer has closed.
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
                )
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Serve a listener."""
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def empty(tape: Path) -> Path:
    """Record a run without exchanges and without the clock."""
    with record(tape, clock=False):
        pass
    return tape


@pytest.fixture(autouse=True)
def _sockets_are_collected() -> Iterator[None]:
    """Collect sockets of refused `create_connection` calls: it closes them only on OSError."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
