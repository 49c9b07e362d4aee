"""MCP servers of an agent are neither started nor called by a replay, and late by a fork."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adapters.mcp_servers import WORDS, McpServersOfAgents
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

Call = Callable[..., Any]


class TestMcpServers(McpServersOfAgents):
    """Servers of an `MCPToolset`."""

    @pytest.fixture
    def ask_server(self, agent: Call, command: dict[str, Any]) -> Callable[[], str]:
        """Run an agent that calls the tool of a server twice at once."""

        async def run() -> str:
            toolset: MCPToolset[Any] = MCPToolset(StdioTransport(**command, keep_alive=False))
            async with agent("helper", WORDS, toolsets=[toolset]) as helper:
                return str((await helper.run("Go on.")).all_messages_json().decode())

        return lambda: asyncio.run(run())
