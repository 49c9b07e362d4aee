"""Servers that talk over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp
import pytest
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

import tracefork_core as tracefork
from tracefork_testkit import closed_network

from .conftest import texts
from .servers import shop
from .serving import Served, serving

WAYS = ["streamable HTTP", "SSE", *(["Client"] if hasattr(mcp, "Client") else [])]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How to connect."""
    return str(request.param)


@pytest.fixture
def server(way: str, counter: Path) -> Iterator[Served]:
    """The shop, served the way that a test connects."""
    made = shop.make(counter)
    with serving(made.sse_app() if way == "SSE" else made.streamable_http_app()) as served:
        yield served


@asynccontextmanager
async def connected(way: str, url: str) -> Any:
    """Connect to the shop and yield what has `call_tool`."""
    if way == "Client":
        async with mcp.Client(f"{url}/mcp") as client:
            yield client
        return
    transport = sse_client(f"{url}/sse") if way == "SSE" else streamable_http_client(f"{url}/mcp")
    async with transport as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        yield session


async def work(way: str, url: str, count: int = 2) -> list[Any]:
    """Use tools, a resource and a prompt."""
    progress: list[Any] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        progress.append((done, total))

    async with connected(way, url) as session:
        order = {"item": "hat", "count": count}
        return [
            [tool.name for tool in (await session.list_tools()).tools],
            texts(await session.call_tool("price", {"item": "hat"})),
            texts(await session.call_tool("order", order, progress_callback=note)),
            texts(await session.call_tool("broken", {})),
            str(await session.read_resource("shop://terms")),
            str(await session.get_prompt("greeting", {"name": "Ada"})),
            progress,
        ]


async def test_a_run_replays_with_the_server_gone(
    way: str, server: Served, tape: Path, counted: Callable[[], list[str]], exchanges: Any
) -> None:
    """Nothing is sent, and the messages are on the tape once, not as HTTP too."""
    with tracefork.record(tape):
        recorded = await work(way, server.url)
    assert counted() == ["2 hat"]
    server.stop()
    with closed_network() as network, tracefork.replay(tape, strict=True) as replayed:
        assert await work(way, server.url) == recorded
    assert replayed.digest == replayed.tape.digest
    assert network.attempts == []
    assert {url.partition(":")[0] for _, url in exchanges()} == {"mcp"}


async def test_two_live_runs_differ(way: str, server: Served) -> None:
    """The negative control of replay: the shop never says the same twice."""
    assert await work(way, server.url) != await work(way, server.url)


async def test_a_fork_connects_at_its_first_live_call(
    way: str, server: Served, tape: Path, counted: Callable[[], list[str]], exchanges: Any
) -> None:
    """What comes before is answered from the tape; the order is placed if writes are allowed."""
    with tracefork.record(tape):
        recorded = await work(way, server.url)
    at = exchanges().index(("tools/call", "mcp:shop/order"))
    before = len(server.requests)
    with pytest.raises(tracefork.WriteError), tracefork.fork(tape, at) as refused:
        await work(way, server.url)
    assert refused.live == 0
    assert len(server.requests) == before
    with tracefork.fork(tape, at, writes="allow") as forked:
        again = await work(way, server.url)
    assert again[:2] == recorded[:2]
    assert again[2] != recorded[2]
    assert counted() == ["2 hat"] * 2
    assert forked.live > 0


async def answered(url: str) -> Any:
    """Return what comes of a connection: the error in the group that a transport raises."""
    try:
        async with connected("streamable HTTP", url):
            return None
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return type(error).__name__, str(error)


@pytest.mark.parametrize("status", [401, 404, 500])
async def test_a_server_that_refuses_refuses_in_a_replay(tape: Path, status: int) -> None:
    """Version 1 raises that from a task of the transport, which cancels the client."""

    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"no"})

    with serving(refuse) as server:
        with tracefork.record(tape):
            recorded = await answered(f"{server.url}/mcp")
        url = server.url
    assert recorded is not None
    with closed_network() as network, tracefork.replay(tape):
        assert await answered(f"{url}/mcp") == recorded
    assert network.attempts == []


async def test_a_server_that_is_gone_is_gone_in_a_replay(tape: Path) -> None:
    """The recording could not connect; the replay does not, even where something listens now."""
    with serving(None) as server:
        url = server.url
    with tracefork.record(tape):
        recorded = await answered(f"{url}/mcp")
    assert recorded is not None
    with closed_network() as network, tracefork.replay(tape):
        assert await answered(f"{url}/mcp") == recorded
    assert network.attempts == []
