"""MCP for tracefork: replay the tools of MCP servers without starting a server.

With this package installed, a session records each client of the package `mcp` without any change
to it: over stdio, streamable HTTP, SSE and websockets, and inside every framework that uses it. A
replay starts no server and connects to none.

    declare    say which tools only read, so that a fork may call them again
    attach     record a transport of your own

Names are loaded when they are first used: importing this package imports no framework.

Layout: `instrument` replaces the transports of `mcp`, `transports` holds what it puts there, `tap`
turns messages into exchanges (`asked` is one that lasts), `messages` reads and builds JSON-RPC
messages, `server` is what is known about a server, `effects` what its tools may do, `failures` are
errors of transports, and `formats` says how exchanges read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

if TYPE_CHECKING:
    from tracefork_mcp.attachment import attach
    from tracefork_mcp.effects import declare

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="mcp",
    distribution="tracefork-mcp",
    framework="mcp",
    seams=("the transports of MCP clients: stdio, streamable HTTP, SSE, websockets",),
)

__all__ = ["ADAPTER", "__version__", "attach", "declare"]

__getattr__ = lazy_names(__name__, attachment=("attach",), effects=("declare",))
