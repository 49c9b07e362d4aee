"""MCP servers of an agent are neither started nor called by a replay, and late by a fork."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adapters.mcp_servers import WORDS, McpServersOfAgents
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from mcp import StdioServerParameters

Call = Callable[..., Any]


class TestMcpServers(McpServersOfAgents):
    """Servers of an `McpToolset`."""

    @pytest.fixture
    def ask_server(
        self, agent: Call, run_events: Call, command: dict[str, Any]
    ) -> Callable[[], str]:
        """Run an agent that calls the tool of a server twice at once."""

        async def run() -> str:
            server = StdioServerParameters(**command)
            tools = McpToolset(
                connection_params=StdioConnectionParams(server_params=server, timeout=30)
            )
            try:
                async with run_events(agent("helper", WORDS, tools=[tools])) as events:
                    return str([event.model_dump_json() async for event in events])
            finally:
                await tools.close()

        return lambda: asyncio.run(run())
