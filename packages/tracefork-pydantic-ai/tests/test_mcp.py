"""MCP servers of an agent are neither started nor called by a replay, and late by a fork."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapters.mcp_servers import WORDS, McpServersOfAgents
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

try:
    from mcp.server import MCPServer as Server
except ImportError:  # Before version 2 of mcp.
    from mcp.server.fastmcp import FastMCP as Server

SERVER = Path(__file__).parents[2] / "tracefork-mcp" / "tests" / "servers" / "plain.py"

Call = Callable[..., Any]


class TestMcpServers(McpServersOfAgents):
    """Servers of an `MCPToolset`."""

    @pytest.fixture
    def ask_server(self, agent: Call, command: dict[str, Any]) -> Callable[[], str]:
        """Run an agent that calls the tool of a server twice at once."""

        async def run() -> str:
            toolset: MCPToolset[Any] = MCPToolset(
                StdioTransport(**command, keep_alive=False), init_timeout=60
            )
            async with agent("helper", WORDS, toolsets=[toolset]) as helper:
                return str((await helper.run("Go on.")).all_messages_json().decode())

        return lambda: asyncio.run(run())


@pytest.mark.filterwarnings("ignore:Field 'lifespan':UserWarning")  # Of mcp 1, about itself.
def test_a_server_in_the_same_process_is_not_called_again(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """Nothing crosses a transport there, so the call of the toolset is the exchange."""
    called: list[str] = []
    server = Server("weather")

    @server.tool()
    def forecast(city: str) -> str:
        called.append(city)
        return f"{city}: {len(called)} degrees"

    def run() -> str:
        return str(ask(agent("helper", WORDS, toolsets=[MCPToolset(server)])))

    recorded, again = twice(run)
    assert recorded == again
    assert sorted(called) == ["Oslo", "Rome"]
    assert len([path for path in paths() if "tool:forecast" in path]) == 2


def test_what_a_server_asks_its_client_is_asked_once(
    agent: Call, ask: Call, model: Call, tmp_path: Path, twice: Call, paths: Call, server: Any
) -> None:
    """A sampling model's request is an exchange in the step of the agent that connected.

    The handler of forms is the program's own code: it runs again, and no server is started.
    """
    counter = tmp_path / "counter.txt"
    command = {"command": sys.executable, "args": [str(SERVER), str(counter)]}
    filled: list[str] = []

    async def fill_in(message: str, *_: Any) -> dict[str, str]:
        filled.append(message)
        return {"city": "Rome"}

    def run() -> str:
        toolset: MCPToolset[Any] = MCPToolset(
            StdioTransport(**command, keep_alive=False),
            sampling_model=model(),
            elicitation_handler=fill_in,
            init_timeout=60,
        )
        words = '@call ask {"question": "@say Four."}\n@call form {}\n@then\n@say Done.'
        return str(ask(agent("helper", words, toolsets=[toolset])))

    recorded, again = twice(run)
    assert "the client said Four." in recorded
    assert "filled in {'city': 'Rome'}" in recorded
    assert recorded == again
    assert sorted(counter.read_text().split("\n")) == ["", "call ask", "call form", "start"]
    assert filled == ["Which city?"] * 2
    assert len(server.requests) == 3
    assert "agent:helper ▸ model:gpt-5-mini" in paths()
