"""MCP servers of an agent are neither started nor called by a replay, and late by a fork."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adapters.mcp_servers import WORDS, McpServersOfAgents
from agent_framework import MCPStdioTool

Call = Callable[..., Any]


class TestMcpServers(McpServersOfAgents):
    """Servers in `tools` of an agent."""

    @pytest.fixture
    def ask_server(self, agent: Call, command: Any) -> Callable[[], str]:
        """Run an agent that calls the tool of a server twice at once."""

        async def run() -> str:
            async with MCPStdioTool(name="weather", request_timeout=30, **command) as server:
                response = await agent("helper", WORDS, tools=[server]).run("Go on.")
            return str([message.to_dict() for message in response.messages])

        return lambda: asyncio.run(run())
