"""MCP inside of a larger run: model calls of callbacks and of servers in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp
import openai
import pytest
from mcp import ClientSession, types
from mcp.client.stdio import stdio_client

import tracefork_core as tracefork
import tracefork_mcp
from tracefork_testkit import ProviderServer, closed_network

from .conftest import texts
from .servers import shop
from .serving import Served

try:
    from mcp.client.websocket import websocket_client
except ImportError:
    websocket_client = None
try:
    from mcp.shared.memory import create_connected_server_and_client_session as in_memory
except ImportError:
    in_memory = None


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """A model whose answers differ each time."""
    with ProviderServer(nondeterministic=True) as server:
        yield server


async def ask(url: str, question: str) -> str:
    """Ask the model."""
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": question}]
        answer = await client.chat.completions.create(model="m", messages=messages)
    return str(answer.choices[0].message.content)


async def sampling(server: Any, url: str) -> list[str]:
    """Let the server ask a model through the client, twice at once."""

    async def sample(context: Any, params: Any) -> Any:
        content = types.TextContent(type="text", text=await ask(url, "2+2?"))
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async with (
        stdio_client(server) as streams,
        ClientSession(*streams, sampling_callback=sample) as session,
    ):
        await session.initialize()
        calls = [session.call_tool("ask", {}) for _ in range(2)]
        return [text for one in await asyncio.gather(*calls) for text in texts(one)]


async def test_a_sampling_callback_runs_again_and_its_model_call_does_not(
    tape: Path, plain: Any, provider: ProviderServer
) -> None:
    """The callback is the program's own code. What it asks the model is an exchange."""
    with tracefork.record(tape):
        recorded = await sampling(plain, provider.url)
    assert len(set(recorded)) == 2
    url, asked = provider.url, len(provider.requests)
    provider.stop()
    with tracefork.replay(tape, strict=True) as replayed:
        assert await sampling(plain, url) == recorded
        models = [one for one in replayed.tape.exchanges if one.method == "POST"]
    assert replayed.digest == replayed.tape.digest
    assert len(models) == asked == 2


async def test_another_sampling_answer_diverges(tape: Path, plain: Any) -> None:
    """The control: what a callback answers is compared, and the call does not hang."""

    async def use(text: str) -> list[str]:
        async def sample(context: Any, params: Any) -> Any:
            content = types.TextContent(type="text", text=text)
            return types.CreateMessageResult(role="assistant", content=content, model="m")

        async with (
            stdio_client(plain) as streams,
            ClientSession(*streams, sampling_callback=sample) as session,
        ):
            await session.initialize()
            return texts(await session.call_tool("ask", {}))

    with tracefork.record(tape):
        await use("four")
    with pytest.raises(tracefork.DivergenceError, match="/result/content/text"):
        with tracefork.replay(tape):
            await asyncio.wait_for(use("five"), 10)


@asynccontextmanager
async def in_process(server: Any) -> Any:
    """Connect to a server in this process."""
    if in_memory is not None:
        async with in_memory(server._mcp_server) as session:
            yield session
    else:
        async with mcp.Client(server) as client:
            yield client


async def test_a_server_in_the_process_is_part_of_the_program(
    tape: Path, tmp_path: Path, provider: ProviderServer, exchanges: Any
) -> None:
    """It runs again in a replay, and its own model calls come from the tape."""
    url = provider.url

    async def use() -> list[str]:
        server = shop.make(tmp_path / "counter")

        @server.tool("ask")
        async def ask_model() -> str:
            return await ask(url, "2+2?")

        async with in_process(server) as session:
            return texts(await session.call_tool("ask", {}))

    with tracefork.record(tape):
        recorded = await use()
    provider.stop()
    assert [method for method, _ in exchanges()] == ["POST"]
    with tracefork.replay(tape, strict=True):
        assert await use() == recorded


async def test_a_transport_of_your_own_is_recorded_if_it_is_attached(
    tape: Path, plain: Any, counted: Callable[[], list[str]], exchanges: Any
) -> None:
    """Without `attach` its messages are on no tape, and a replay connects."""

    async def use(transport: Any) -> list[str]:
        async with transport as streams, ClientSession(*streams) as session:
            await session.initialize()
            return texts(await session.call_tool("now", {}))

    own = asynccontextmanager(stdio_client.__wrapped__)
    with tracefork.record(tape):
        recorded = await use(tracefork_mcp.attach(own(plain), name="mine"))
        assert await use(own(plain))
    assert exchanges()[:2] == [("connect", "mcp:mine"), ("initialize", "mcp:mine")]
    starts = counted().count("start")
    with closed_network(), tracefork.replay(tape):
        assert await use(tracefork_mcp.attach(own(plain), name="mine")) == recorded
    assert counted().count("start") == starts == 2


async def test_a_connection_that_was_open_before_the_session_is_live(
    tape: Path, plain: Any, exchanges: Any
) -> None:
    """It goes on, and nothing of it is on the tape."""
    async with stdio_client(plain) as streams, ClientSession(*streams) as session:
        await session.initialize()
        with tracefork.record(tape):
            assert texts(await session.call_tool("echo", {"a": 1})) == ['{"a": 1}']
    assert exchanges() == []


@pytest.mark.skipif(not hasattr(mcp, "Client"), reason="version 1 has no Client")
async def test_a_client_that_was_made_before_the_session_is_recorded(
    tape: Path, plain: Any, counted: Callable[[], list[str]]
) -> None:
    """It connects inside. Modules often make their clients when they are imported."""
    first, second = (mcp.Client(plain, mode="legacy") for _ in range(2))

    async def use(client: Any) -> list[str]:
        async with client:
            return texts(await client.call_tool("now", {}))

    with tracefork.record(tape):
        recorded = await use(first)
    with tracefork.replay(tape, strict=True):
        assert await use(second) == recorded
    assert counted().count("start") == 1


@pytest.mark.skipif(websocket_client is None, reason="version 2 has no websockets")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_websockets_replay(tape: Path, tmp_path: Path) -> None:
    """As the other transports, with the server gone."""
    from mcp.server.websocket import websocket_server

    server = shop.make(tmp_path / "counter")._mcp_server

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async with websocket_server(scope, receive, send) as streams:
            await server.run(*streams, server.create_initialization_options())

    async def use(url: str) -> list[str]:
        async with websocket_client(url) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return texts(await session.call_tool("price", {"item": "hat"}))

    served = Served(app, ws="websockets-sansio")
    url = served.url.replace("http", "ws", 1)
    with tracefork.record(tape):
        recorded = await use(url)
    served.stop()
    with closed_network(), tracefork.replay(tape, strict=True):
        assert await use(url) == recorded
