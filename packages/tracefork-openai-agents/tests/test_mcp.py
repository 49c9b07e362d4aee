"""MCP servers of an agent are neither started nor called by a replay, and late by a fork."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adapters.mcp_servers import WORDS, McpServersOfAgents
from agents import Runner
from agents.mcp import MCPServerStdio

Call = Callable[..., Any]


class TestMcpServers(McpServersOfAgents):
    """Servers in `mcp_servers` of an agent."""

    @pytest.fixture
    def ask_server(self, agent: Call, command: Any) -> Callable[[], str]:
        """Run an agent that calls the tool of a server twice at once."""

        async def run() -> str:
            stdio = MCPServerStdio(command, name="weather", client_session_timeout_seconds=30)
            async with stdio as server:
                result = await Runner.run(agent("Helper", WORDS, mcp_servers=[server]), "Go on.")
            return str(result.to_input_list())

        return lambda: asyncio.run(run())
