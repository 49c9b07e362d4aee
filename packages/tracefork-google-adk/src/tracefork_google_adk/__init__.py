"""Google ADK for tracefork: replay an agent without calling its tools again, and fork its sessions.

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open.
"""

from __future__ import annotations

from tracefork_core.adapters import Adapter

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="google-adk",
    distribution="tracefork-google-adk",
    framework="google-adk",
    seams=(
        "a plugin: steps",
        "tools, below callbacks and confirmations",
    ),
)

__all__ = ["ADAPTER", "__version__"]
