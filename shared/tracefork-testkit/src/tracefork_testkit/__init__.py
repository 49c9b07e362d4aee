"""Scripted model providers on loopback, and the fixtures that prove a test stayed offline.

Layout: `provider` is the server, `http1` and `connection` its wire protocol, `routes` its paths.
Each provider format has a file, with `dialect` as their interface. `script`, `directives` and
`faults` define the answers. `realhost` lets real host names reach the server, `offline` closes the
network, `websocket` serves websockets, and `plugin` holds the fixtures. `conformance` and `golden`
serve the tests of adapters.
"""

from __future__ import annotations

from tracefork_testkit.conversation import Message, ModelRequest, Tool, ToolCall, ToolResult
from tracefork_testkit.directives import directed
from tracefork_testkit.http1 import ReceivedRequest
from tracefork_testkit.offline import ClosedNetwork, NetworkClosedError, closed_network
from tracefork_testkit.provider import ProviderServer
from tracefork_testkit.script import Fault, Hold, Reply, Usage

__version__ = "0.1.0"
__all__ = [
    "ClosedNetwork",
    "Fault",
    "Hold",
    "Message",
    "ModelRequest",
    "NetworkClosedError",
    "ProviderServer",
    "ReceivedRequest",
    "Reply",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Usage",
    "closed_network",
    "directed",
]
