"""The MCP server of the shop's orders, over stdio. Without Node.js it has the policies too."""

import os
import sys
from pathlib import Path

from faults import shows

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # Version 1 of the package mcp.
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("orders")


@server.tool()
def find_order(number: int) -> str:
    """Look up an order by its number."""
    if number != 17:
        return f"There is no order {number}."
    days = 44 if shows("mcp") else 20
    return f"Order 17: one turntable, delivered {days} days ago."


def read_text_file(path: str) -> str:
    """Read a policy."""
    return Path("policies", Path(path).name).read_text()


if __name__ == "__main__":
    if not os.environ.get("ORDERS_KEY"):
        sys.exit("The server of orders needs ORDERS_KEY.")
    if "--policies" in sys.argv:
        server.tool()(read_text_file)
    server.run("stdio")
