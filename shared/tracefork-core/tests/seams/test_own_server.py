"""An agent that calls its own server: which requests of that server are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_testkit import ProviderServer


@contextmanager
def running(provider: str) -> Iterator[str]:
    """Serve, in a thread, the answers of the provider."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = httpx2.post(f"{provider}/echo", content=b"from the server").content
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_requests_of_a_server_behind_a_socket_are_missing_at_replay(tape: Path) -> None:
    """Its answer comes from the tape, so the server gets no request, and sends none."""

    def agent() -> str:
        with running(provider.url) as url:
            return httpx2.get(url).text

    with ProviderServer() as provider:
        with record(tape):
            assert agent() == "from the server"
        with pytest.raises(DivergenceError) as raised, replay(tape):
            agent()
        assert raised.value.divergence.kind == "leftover"
    assert len(provider.requests) == 1


def test_requests_below_an_asgi_transport_are_part_of_the_exchange(tape: Path) -> None:
    """The transport does not run at replay, so nothing is missing."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async with httpx2.AsyncClient() as client:
            body = (await client.post(f"{provider.url}/echo", content=b"from the app")).content
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def agent() -> str:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://app") as client:
            return (await client.get("/")).text

    with ProviderServer() as provider:
        with record(tape):
            assert asyncio.run(agent()) == "from the app"
        with replay(tape) as run:
            assert asyncio.run(agent()) == "from the app"
    assert (len(provider.requests), run.exchanges) == (1, 1)
