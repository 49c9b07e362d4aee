"""The seam covers all that a client sends through: transports, mounts, proxies, connectors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import httpx
import pytest
import requests

from tracefork_core import EgressError, Tape, record, replay
from tracefork_testkit import ProviderServer

ECHO = {"path": "/echo", "method": "POST", "content": b"said"}
WHOLE = {**ECHO, "decoded": True}
"""Read as one reads what is there already: its raw stream is used up."""


def passing(library: Any) -> Any:
    """Return a custom transport that counts its requests."""
    lib = library.lib
    base = lib.AsyncHTTPTransport if library.is_async else lib.HTTPTransport

    class Passing(base):  # type: ignore[misc,valid-type]
        passed = 0

        def handle_request(self, request: Any) -> Any:
            self.passed += 1
            return super().handle_request(request)

        async def handle_async_request(self, request: Any) -> Any:
            self.passed += 1
            return await super().handle_async_request(request)

    return Passing(verify=False)


@pytest.fixture(params=["httpx", "httpx-async", "httpx2", "httpx2-async"])
def family(request: pytest.FixtureRequest) -> Any:
    """Return each library that has transports."""
    return request.getfixturevalue("libraries")[request.param]


@pytest.mark.parametrize("where", ["transport", "mount"])
def test_a_custom_transport_is_not_called_at_replay(
    family: Any, provider: ProviderServer, round_trip: Callable[..., Any], where: str
) -> None:
    """It makes the call while recording."""
    made: list[Any] = []

    def act(url: str) -> Any:
        made.append(passing(family))
        options = {"transport": made[-1]} if where == "transport" else {"mounts": {url: made[-1]}}
        return family.all(url, ECHO, **options)

    trip = round_trip(provider, act)
    assert [transport.passed for transport in made] == [1, 0]
    assert trip.replayed == trip.recorded


def test_a_mock_is_recorded_like_any_transport(family: Any, tmp_path: Path) -> None:
    """The tape holds the answer of the mock, and the replay does not call it."""
    lib, path = family.lib, tmp_path / "mock.tape"
    asked = []

    def answer(request: Any) -> Any:
        asked.append(request.url.path)
        return lib.Response(201, text="mocked", headers={"x-mock": "yes"})

    with record(path):
        recorded = family.all("http://mock", WHOLE, transport=lib.MockTransport(answer))
    with replay(path):
        replayed = family.all("http://mock", WHOLE, transport=lib.MockTransport(answer))
    assert asked == ["/echo"]
    assert (recorded[0].status, recorded[0].body) == (201, b"mocked")
    assert replayed == recorded


def test_draws_while_a_body_is_read_are_off_the_tape(family: Any, tmp_path: Path) -> None:
    """A body is read below the seam, as its head is; at replay no code reads it."""
    lib, path = family.lib, tmp_path / "drawing.tape"

    class Drawing(lib.AsyncByteStream, lib.SyncByteStream):  # type: ignore[name-defined]
        def __iter__(self) -> Iterator[bytes]:
            for _ in range(3):
                yield uuid4().bytes

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self:
                yield piece

    def run() -> list[Any]:
        transport = lib.MockTransport(lambda _: lib.Response(200, stream=Drawing()))
        return [uuid4(), family.all("http://mock", ECHO, transport=transport), uuid4()]

    with record(path):
        recorded = run()
    assert len(recorded[1][0].body) == 48
    with replay(path) as replaying:
        assert run() == recorded
    assert replaying.entropy_misses == 0
    with Tape.open(path) as tape:
        sites = {reads.site for reads in tape.chance.reads if reads.source == "entropy"}
    assert sites == {f"{__name__}:{run.__qualname__}"}


@pytest.mark.parametrize("path", ["/echo", "/gzip", "/chunked?n=3"])
def test_a_transport_that_reads_the_body_itself_is_recorded(
    family: Any, provider: ProviderServer, round_trip: Callable[..., Any], path: str
) -> None:
    """A transport that logs bodies has used up the stream; the tape has the body all the same."""
    lib = family.lib
    base = lib.AsyncHTTPTransport if family.is_async else lib.HTTPTransport

    class Logging(base):  # type: ignore[misc,valid-type]
        def handle_request(self, request: Any) -> Any:
            response = super().handle_request(request)
            response.read()
            return response

        async def handle_async_request(self, request: Any) -> Any:
            response = await super().handle_async_request(request)
            await response.aread()
            return response

    ask = {"path": path, "method": "POST", "content": b"said" * 9, "decoded": True}
    transport = Logging(verify=False)
    trip = round_trip(provider, lambda url: family.all(url, ask, transport=transport))
    assert len(trip.recorded[0].body) > 20
    assert trip.replayed[0].body == trip.recorded[0].body
    assert [end for _, _, end in trip.tape] == ["eof"]


def test_a_transport_with_a_client_inside_is_one_exchange(
    family: Any, provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """A transport that sends through its own client crosses one seam, not two."""
    lib = family.lib
    base = lib.AsyncBaseTransport if family.is_async else lib.BaseTransport

    class Relay(base):  # type: ignore[misc,valid-type]
        def handle_request(self, request: Any) -> Any:
            with lib.Client(verify=False) as inner:
                body = inner.post(str(request.url), content=request.content)
            return lib.Response(body.status_code, content=body.content)

        async def handle_async_request(self, request: Any) -> Any:
            async with lib.AsyncClient(verify=False) as inner:
                body = await inner.post(str(request.url), content=request.content)
            return lib.Response(body.status_code, content=body.content)

    trip = round_trip(provider, lambda url: family.all(url, WHOLE, transport=Relay()))
    assert trip.tape == [("POST", 200, "eof")]
    assert trip.replayed == trip.recorded


def test_a_transport_on_another_library_is_one_exchange(
    provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """httpx over aiohttp, as some SDKs offer it, crosses only the seam of httpx."""

    class OverAiohttp(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            async with (
                aiohttp.ClientSession() as client,
                client.request(request.method, str(request.url), data=request.content) as found,
            ):
                return httpx.Response(found.status, content=await found.read())

    async def ask(url: str) -> bytes:
        async with httpx.AsyncClient(transport=OverAiohttp()) as client:
            return (await client.post(f"{url}/echo", content=b"nested")).content

    trip = round_trip(provider, lambda url: asyncio.run(ask(url)))
    with Tape.open(trip.path) as tape:
        assert [exchange.aside.seam for exchange in tape.exchanges] == ["httpx"]
    assert trip.recorded == trip.replayed == b"nested"


def test_a_proxy_from_the_environment_is_not_used_at_replay(
    library: Any,
    provider: ProviderServer,
    round_trip: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The proxy in HTTP_PROXY gets the request while recording."""
    monkeypatch.setenv("http_proxy", provider.url)
    client = {"trust_env": True} if library.lib in (aiohttp, requests) else {}
    trip = round_trip(provider, lambda _: library.all("http://elsewhere.test", ECHO, **client))
    (received,) = provider.requests
    assert received.header("host") == "elsewhere.test"
    assert trip.recorded[0].status == 200
    assert trip.replayed == trip.recorded


def test_a_custom_connector_is_not_called_at_replay(
    provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """A connector of aiohttp makes the connection while recording."""
    made: list[Any] = []

    class Counting(aiohttp.TCPConnector):
        connects = 0

        async def connect(self, *args: Any, **kwargs: Any) -> Any:
            self.connects += 1
            return await super().connect(*args, **kwargs)

    async def ask(url: str) -> bytes:
        made.append(Counting())
        async with aiohttp.ClientSession(connector=made[-1]) as client:
            async with client.get(f"{url}/bytes/4") as response:
                return await response.read()

    trip = round_trip(provider, lambda url: asyncio.run(ask(url)))
    assert [connector.connects for connector in made] == [1, 0]
    assert trip.replayed == trip.recorded


def test_all_libraries_share_one_tape(
    provider: ProviderServer, round_trip: Callable[..., Any], libraries: dict[str, Any]
) -> None:
    """It says which library sent what, in order."""

    def act(url: str) -> list[Any]:
        return [library.one(url, "/bytes/2") for library in libraries.values()]

    trip = round_trip(provider, act)
    with Tape.open(trip.path) as tape:
        seams = [exchange.aside.seam for exchange in tape.exchanges]
    assert seams == ["httpx", "httpx", "httpx2", "httpx2", "aiohttp", "requests"]
    assert trip.replayed == trip.recorded


SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"


def said_on_a_websocket(library: Any, url: str) -> bytes:
    """Return what a server sends after the upgrade, as libraries on top of a client read it."""
    ask = {"headers": {"upgrade": "WebSocket", "connection": "upgrade"}}

    async def listen() -> bytes:
        async with library.lib.AsyncClient() as client, client.stream("GET", url, **ask) as answer:
            return bytes(await answer.extensions["network_stream"].read(5))

    if library.is_async:
        return asyncio.run(listen())
    with library.lib.Client() as client, client.stream("GET", url, **ask) as answer:
        return bytes(answer.extensions["network_stream"].read(5))


def test_a_websocket_passes_through_and_is_refused_at_replay(
    family: Any, tape: Path, wire: Callable[..., Any]
) -> None:
    """Its traffic is on no tape: the receipt counts it, and a replay sends nothing."""
    server = wire(SWITCHING + b"hello")
    with record(tape) as recording:
        assert said_on_a_websocket(family, server.url) == b"hello"
    assert recording.receipt is not None
    assert (recording.receipt.crossed, len(recording.receipt.strays)) == (0, 1)
    with Tape.open(tape) as recorded:
        assert not recorded.exchanges
    with pytest.raises(EgressError, match=r"models\.example"), replay(tape):
        said_on_a_websocket(family, "http://models.example/")
