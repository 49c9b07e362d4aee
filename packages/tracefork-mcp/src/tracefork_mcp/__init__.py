"""MCP for tracefork: replay the tools of MCP servers without starting a server.

With this package installed, a session records each client of the package `mcp` without any change
to it: over stdio, streamable HTTP, SSE and websockets, and inside every framework that uses it. A
replay starts no server and connects to none.

Layout: `instrument` replaces the transports of `mcp`, `transports` holds what it puts there, `tap`
turns messages into exchanges, `messages` reads and builds JSON-RPC messages, and `server` is what
is known about a server: its name and the effects of its tools.
"""

from __future__ import annotations

from tracefork_core.adapters import Adapter

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="mcp",
    distribution="tracefork-mcp",
    framework="mcp",
    seams=("the transports of MCP clients: stdio, streamable HTTP, SSE, websockets",),
)

__all__ = ["ADAPTER", "__version__"]
