"""pydantic-ai for tracefork: one tape per agent run, replayed without calling its tools again.

With this package installed, a session records runs of pydantic-ai's agents without any change to
them. The steps of its tape are agents, their nodes, model calls, tools and output validators.

    tape               record a test the first time, and replay it from then on
    leave_live         let a tool run in replays too
    attach, detach     record an agent or a model in a session with ambient=False

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `steps` makes steps of agents, nodes and
validators, `models` of requests to models, and `graphs` of the nodes of a program's graphs. `tools`
makes exchanges of tool calls, `live_tools` says which run in replays too, and `agent_references`
which functions run agents. `tool_changes` notes what a tool did besides returning a result, and
`tool_values` converts results and exceptions. `attachment` and `clients` are for sessions with
ambient=False, and `for_tests` for tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

if TYPE_CHECKING:
    from tracefork_pydantic_ai.attachment import attach, detach
    from tracefork_pydantic_ai.for_tests import tape
    from tracefork_pydantic_ai.live_tools import leave_live

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

__all__ = ["ADAPTER", "__version__", "attach", "detach", "leave_live", "tape"]

__getattr__ = lazy_names(
    __name__, attachment=("attach", "detach"), for_tests=("tape",), live_tools=("leave_live",)
)
