"""MCP servers of an agent are neither started nor called by a replay, and late by a fork."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from adapters.mcp_servers import WORDS, McpServersOfAgents
from mcp import StdioServerParameters, stdio_client
from strands.tools.mcp import MCPClient


class TestMcpServers(McpServersOfAgents):
    """Servers of an `MCPClient`, which runs its connection in a thread of its own."""

    @pytest.fixture
    def ask_server(self, agent: Callable[..., Any], command: dict[str, Any]) -> Callable[[], str]:
        """Run an agent that calls the tool of a server twice at once."""

        def run() -> str:
            with MCPClient(lambda: stdio_client(StdioServerParameters(**command))) as client:
                helper = agent("Helper", WORDS, tools=client.list_tools_sync())
                helper("Go on.")
                return str(helper.messages)

        return run
