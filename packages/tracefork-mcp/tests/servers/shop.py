"""A server of the package `mcp`: tools, a resource and a prompt.

    python shop.py COUNTER

It appends a line to the file COUNTER for each order.
"""

from __future__ import annotations

import sys
import uuid
import warnings
from pathlib import Path
from typing import Any

try:
    from mcp.server.mcpserver import Context, MCPServer
except ImportError:
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer


def make(counter: Path) -> Any:
    """Return the server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of pydantic-settings, about version 1.
        server = MCPServer("shop", instructions="Sells hats.")

    @server.tool()
    def price(item: str) -> str:
        """Look up a price."""
        return f"{item} costs {uuid.uuid4().int % 1000}"

    @server.tool()
    async def order(item: str, count: int, ctx: Context) -> dict[str, Any]:
        """Order something."""
        with counter.open("a") as orders:
            orders.write(f"{count} {item}\n")
        await ctx.report_progress(1, 2)
        return {"order": uuid.uuid4().hex, "item": item, "count": count}

    @server.tool()
    def broken() -> str:
        """Fail."""
        raise ValueError(f"out of stock {uuid.uuid4().hex}")

    @server.resource("shop://terms")
    def terms() -> str:
        """Read the terms."""
        return f"terms {uuid.uuid4().hex}"

    @server.prompt()
    def greeting(name: str) -> str:
        """Greet a person."""
        return f"Greet {name} {uuid.uuid4().hex}"

    return server


if __name__ == "__main__":
    make(Path(sys.argv[1])).run("stdio")
