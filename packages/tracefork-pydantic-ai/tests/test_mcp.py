"""MCP servers of an agent are neither started nor called by a replay, and late by a fork."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adapters.mcp_servers import WORDS, McpServersOfAgents
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

try:
    from mcp.server import MCPServer as Server
except ImportError:  # Before version 2 of mcp.
    from mcp.server.fastmcp import FastMCP as Server

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
