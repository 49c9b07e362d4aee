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
    assert recorded[-1] == [(1, 2)]
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
    assert again[-1] == [(1, 2)]
    assert counted() == ["2 hat"] * 2
    assert forked.live > 0
