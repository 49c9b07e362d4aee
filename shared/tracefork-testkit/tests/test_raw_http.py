"""The plain endpoints and the wire protocol, as bare HTTP clients see them."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests

from tracefork_testkit import ProviderServer

both = pytest.mark.parametrize("lib", [httpx, httpx2])


@both
def test_plain_endpoints_answer(provider: ProviderServer, lib: Any) -> None:
    """These are echo, sized bytes, gzip, chunks, cookie, status and redirect."""
    with lib.Client(base_url=provider.url, follow_redirects=True) as client:
        assert client.post("/echo", content=b"\x00\xff").content == b"\x00\xff"
        assert len(client.get("/bytes/70000").content) == 70000
        assert client.get("/gzip").text == "compressed " * 100
        assert client.get("/gzip").headers["content-encoding"] == "gzip"
        assert client.get("/chunked?n=3&delay=0.01").text == "chunk 0\nchunk 1\nchunk 2\n"
        client.get("/set-cookie")
        assert client.cookies["session"] == "testkit-cookie-value"
        assert client.get("/status/418").status_code == 418
        assert client.post("/redirect?to=/echo", content=b"kept").content == b"kept"
        assert client.get("/nowhere").status_code == 404
        assert client.get("/bytes/many").status_code == 400
    assert provider.requests[-1].header("COOKIE") == "session=testkit-cookie-value"


def test_one_connection_serves_many_requests(provider: ProviderServer) -> None:
    """Keep-alive also works after a stream."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    with httpx2.Client(base_url=provider.url) as client:
        for _ in range(3):
            client.post("/v1/chat/completions", json=body)
    assert provider.connections == 1
    assert [request.connection for request in provider.requests] == [1, 1, 1]
    assert provider.requests[0].json() == body


@both
@pytest.mark.parametrize("delay", [0, 0.01])
def test_one_event_is_one_chunk(lib: Any, delay: float) -> None:
    """A raw reader sees the boundaries of events, even without a delay between them."""
    body = {"model": "m", "messages": [{"role": "user", "content": "@say a b c"}], "stream": True}
    with (
        ProviderServer(chunk_delay=delay) as server,
        lib.Client() as client,
        client.stream("POST", f"{server.url}/v1/chat/completions", json=body) as answer,
    ):
        chunks = list(answer.iter_raw())
    assert len(chunks) == 6
    assert all(chunk.endswith(b"\n\n") for chunk in chunks)


def test_aiohttp_streams_and_sends_chunked_bodies(provider: ProviderServer) -> None:
    """A request body in chunks is read, and an answer in chunks arrives."""

    async def parts() -> Any:
        yield b"one "
        yield b"two"

    async def run() -> tuple[bytes, bytes]:
        async with aiohttp.ClientSession(provider.url) as session:
            async with session.post("/echo", data=parts()) as answer:
                echoed = await answer.read()
            async with session.get("/chunked?n=2") as answer:
                return echoed, await answer.read()

    assert asyncio.run(run()) == (b"one two", b"chunk 0\nchunk 1\n")


def test_requests_reads_compressed_json() -> None:
    """`compress` gzips JSON answers for clients that accept it."""
    body: Any = {"model": "m", "messages": [{"role": "user", "content": "@say small"}]}
    with ProviderServer(compress=True) as server, requests.Session() as session:
        url = f"{server.url}/v1/chat/completions"
        answer = session.post(url, json=body)
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.json()["choices"][0]["message"]["content"] == "small"
        bare = session.post(url, json=body, headers={"accept-encoding": "identity"})
        assert "content-encoding" not in bare.headers


def exchange(server: ProviderServer, *writes: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        for data in writes:
            raw.sendall(data)
        return b"".join(iter(lambda: raw.recv(65536), b""))


def test_split_and_pipelined_requests_are_answered_in_order(provider: ProviderServer) -> None:
    """The first answer is slow, and the bytes are split at any position."""
    first = b"GET /chunked?n=2&delay=0.01 HTTP/1.1\r\nhost: x\r\n\r\n"
    second = b"POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\n\r\nlast"
    whole = first + second
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    got = exchange(provider, *pieces)
    assert got.count(b"HTTP/1.1 200 OK") == 2
    assert got.index(b"chunk 1") < got.index(b"last")


def test_an_invalid_request_gets_a_400_and_a_closed_connection(provider: ProviderServer) -> None:
    """The server cannot find the next request after invalid bytes."""
    assert b"400 Bad Request" in exchange(provider, b"hello\r\n\r\n")
