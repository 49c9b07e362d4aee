"""Tools of MCP servers are always exchanges: their work happens in another process."""

from __future__ import annotations

from pathlib import Path

from langchain_mcp_adapters.tools import load_mcp_tools
from mcp.server.fastmcp import FastMCP
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import ToolAnnotations

import tracefork_core as tracefork
from tracefork_langgraph import attach, detach


async def test_a_tool_of_a_server_is_an_exchange(tape: Path) -> None:
    """The hint of the server decides its effect. A replay does not call it unless it is detached.

    tool_effects.py recognizes such a tool by the module of its function.
    """
    done: list[str] = []
    server = FastMCP("shop")

    @server.tool(annotations=ToolAnnotations(readOnlyHint=True))
    def find(order: int) -> str:
        done.append("find")
        return f"order {order} is lost"

    @server.tool()
    def refund(order: int) -> str:
        done.append("refund")
        return f"paid {order} back"

    async with create_connected_server_and_client_session(server) as session:
        tools = [attach(tool) for tool in await load_mcp_tools(session)]

        async def run() -> list[object]:
            return [await tool.ainvoke({"order": 17}) for tool in tools]

        with tracefork.record(tape):
            recorded = await run()
        with tracefork.replay(tape):
            assert await run() == recorded
        assert "order 17 is lost" in str(recorded)
        assert done == ["find", "refund"]
        with tracefork.Tape.open(tape) as opened:
            found = [(one.url, one.aside.effect) for one in opened.exchanges]
        assert found == [("tool:find", "read"), ("tool:refund", None)], (
            "the tools of langchain-mcp-adapters are made elsewhere, or tell their hints otherwise"
        )
        for tool in tools:
            await detach(tool).ainvoke({"order": 17})
        assert done == ["find", "refund"] * 2
