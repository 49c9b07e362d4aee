"""An MCP server over stdio that notes in a file that it started, and each call: `FILE`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer

notes = Path(sys.argv[1])


def note(line: str) -> int:
    with notes.open("a") as file:
        file.write(f"{line}\n")
    return len(notes.read_text().splitlines())


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Of pydantic-settings, about version 1.
    server = MCPServer("weather")


@server.tool()  # type: ignore[untyped-decorator]
def forecast(city: str) -> str:
    """Say how the weather will be."""
    return f"{city}: forecast {note(city)}"


note("started")
server.run("stdio")
