"""HTTP/2 of httpx and httpx2: many answers on one connection, recorded like all others."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import RequestReceived, StreamEnded

from tracefork_core import DivergenceError, record, replay

HTTP2 = {"http1": False, "http2": True}
"""Without TLS, a client of httpx speaks HTTP/2 only if HTTP/1 is off."""
PIECES = (b"data: one\n\n", b"data: two\n\n", b"data: [DONE]\n\n")


class Server:
    """Speaks only HTTP/2.

    `/reset` resets the stream after its first piece. `/last/N` waits for N such requests, and then
    answers the last one first. Every other path gets three events.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://{}:{}".format(*self._listener.getsockname())

    def __enter__(self) -> Self:
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()


def serve(connection: socket.socket) -> None:
    """Answer all requests on a connection."""
    spoken = H2Connection(H2Configuration(client_side=False))
    spoken.initiate_connection()
    paths: dict[int, str] = {}
    waiting: list[int] = []
    with connection, suppress(OSError):
        connection.sendall(spoken.data_to_send())
        while heard := connection.recv(65536):
            for event in spoken.receive_data(heard):
                if isinstance(event, RequestReceived):
                    paths[event.stream_id] = dict(event.headers)[b":path"].decode()
                elif isinstance(event, StreamEnded):
                    _, kind, *counts = paths[event.stream_id].split("/")
                    waiting.append(event.stream_id)
                    if kind != "last" or len(waiting) == int(counts[0]):
                        while waiting:
                            say(spoken, waiting.pop(), cut=kind == "reset")
            connection.sendall(spoken.data_to_send())


def say(spoken: H2Connection, stream: int, *, cut: bool) -> None:
    """Answer on a stream; `cut` resets it."""
    head = [(":status", "200"), ("content-type", "text/event-stream"), ("x-at", str(stream))]
    spoken.send_headers(stream, head)
    for piece in PIECES[:1] if cut else PIECES:
        spoken.send_data(stream, piece)
    if cut:
        spoken.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)
    else:
        spoken.end_stream(stream)


@pytest.fixture
def server() -> Iterator[Server]:
    """Serve HTTP/2."""
    with Server() as serving:
        yield serving


@pytest.fixture(params=["httpx", "httpx-async", "httpx2", "httpx2-async"])
def speaker(request: pytest.FixtureRequest, libraries: dict[str, Any]) -> Any:
    """Return each library that speaks HTTP/2."""
    return libraries[request.param]


def test_http2_answers_replay(speaker: Any, server: Server, round_trip: Callable[..., Any]) -> None:
    """Version, reason, headers and pieces, of two answers on one connection."""
    asks = [{"path": "/a"}, {"path": "/b", "method": "POST", "json": {"say": "hi"}}]
    trip = round_trip(server, lambda url: speaker.all(url, *asks, **HTTP2))
    assert [(one.version, one.body) for one in trip.recorded] == [
        ("HTTP/2", b"".join(PIECES)),
        ("HTTP/2", b"".join(PIECES)),
    ]
    assert trip.replayed == trip.recorded


def test_a_reset_stream_fails_with_the_same_exception(
    speaker: Any, server: Server, round_trip: Callable[..., Any]
) -> None:
    """It comes after the piece that arrived before the reset."""
    trip = round_trip(server, lambda url: speaker.all(url, {"path": "/reset"}, **HTTP2))
    (failed,) = trip.recorded
    assert failed.error is not None
    assert failed.error[0] == "RemoteProtocolError"
    assert trip.replayed == trip.recorded


@pytest.mark.parametrize("lib", ["httpx", "httpx2"])
def test_answers_on_one_connection_replay_in_the_recorded_order(
    lib: str, server: Server, libraries: dict[str, Any], tape: Path
) -> None:
    """Four requests at once, answered in one piece, the last one first."""

    async def ask(client: Any, i: int) -> None:
        response = await client.post(f"{server.url}/last/4", json={"i": i})
        seen.append((i, response.headers["x-at"], response.content))

    async def run() -> list[Any]:
        seen.clear()
        async with libraries[lib].lib.AsyncClient(**HTTP2) as client:
            await asyncio.gather(*(ask(client, i) for i in range(4)))
        return seen.copy()

    seen: list[Any] = []
    with record(tape):
        recorded = asyncio.run(run())
    server.stop()
    with replay(tape):
        assert asyncio.run(run()) == recorded
    assert len({at for _, at, _ in recorded}) == 4
    assert {body for _, _, body in recorded} == {b"".join(PIECES)}


def test_another_body_diverges(speaker: Any, server: Server, tape: Path) -> None:
    """Negative control: requests over HTTP/2 are compared."""

    def ask(say: str) -> Any:
        asked = {"path": "/a", "method": "POST", "json": {"say": say}}
        return speaker.all(server.url, asked, **HTTP2)

    with record(tape):
        ask("hi")
    with pytest.raises(DivergenceError, match="/say"), replay(tape):
        ask("ho")
