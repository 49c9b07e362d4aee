"""AutoGen for tracefork: replay a team without calling its tools again, and blame its agents.

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `teams`, `agents` and `models` make
steps.
"""

from __future__ import annotations

from tracefork_core.adapters import Adapter

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="autogen",
    distribution="tracefork-autogen",
    framework="autogen-agentchat",
    seams=("agents, models and tools: steps",),
)

__all__ = ["ADAPTER", "__version__"]
