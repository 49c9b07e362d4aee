"""MCP servers of an agent are neither started nor called by a replay, and late by a fork."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapters.mcp_servers import WORDS, McpServersOfAgents
from autogen_core import CancellationToken
from autogen_ext.tools.mcp import McpWorkbench, StdioMcpToolAdapter, StdioServerParams
from mcp import Tool

Call = Callable[..., Any]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def server(command: dict[str, Any]) -> StdioServerParams:
    """Return how a server is started, which takes longer than 5 s on a busy machine."""
    return StdioServerParams(**command, read_timeout_seconds=60)


class TestMcpWorkbench(McpServersOfAgents):
    """Servers of an `McpWorkbench`."""

    @pytest.fixture
    def ask_server(self, agent: Call, command: dict[str, Any]) -> Callable[[], str]:
        """Run an agent that calls the tool of a server twice at once."""

        async def run() -> str:
            async with McpWorkbench(server(command)) as tools:
                helper = agent("helper", WORDS, tools=None, workbench=tools)
                done = await helper.run(task="Go on.")
                return str([message.to_text() for message in done.messages])

        return lambda: asyncio.run(run())

    def test_tools_that_connect_for_each_call_connect_to_nothing_in_a_replay(
        self, command: dict[str, Any], notes: Path, twice: Call
    ) -> None:
        """Each call is one exchange of the server and none of the tool."""

        async def run() -> str:
            tool = StdioMcpToolAdapter(server(command), Tool(name="forecast", inputSchema=SCHEMA))
            result = await tool.run_json({"city": "Rome"}, CancellationToken())
            return tool.return_value_as_string(result)

        recorded, again = twice(lambda: asyncio.run(run()))
        assert recorded == again
        assert notes.read_text().split() == ["started", "Rome"]
