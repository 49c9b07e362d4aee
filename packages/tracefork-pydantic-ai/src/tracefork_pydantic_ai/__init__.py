"""pydantic-ai for tracefork: one tape per agent run, replayed without calling its tools again.

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `steps` makes steps of agents, nodes and
validators, `models` of requests to models, and `blocks` of what is entered and left.
"""

from __future__ import annotations

from tracefork_core.adapters import Adapter

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="pydantic-ai",
    distribution="tracefork-pydantic-ai",
    framework="pydantic-ai-slim",
    seams=(
        "agents, nodes and model calls: steps",
        "tools, below validation and approval",
    ),
)

__all__ = ["ADAPTER", "__version__"]
