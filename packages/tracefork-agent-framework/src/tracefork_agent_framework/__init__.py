"""Microsoft Agent Framework for tracefork: replay agents without calling tools again.

With this package installed, a session records agents and workflows of Agent Framework without any
change to them. The steps of its tape are workflows, nodes, agents, model calls and tools.

    leave_live         let a tool run in replays too
    attach, detach     record an agent or a workflow in a session with ambient=False

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `steps` makes steps of agents and model
calls, `workflows` of workflows, nodes and joins, `streams` puts the work of a call into a step
and lets a divergence through, and `places` knows names and lanes. `tools` makes exchanges of
tool calls, `live_tools` says which run in replays too, `changes` notes what a tool did besides
returning a result, and `values` converts results. `checkpoints` and `histories` keep a replay away
from what outlives a run. `attachment` and `clients` are for sessions with ambient=False.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

if TYPE_CHECKING:
    from tracefork_agent_framework.attachment import attach, detach
    from tracefork_agent_framework.live_tools import leave_live

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="agent-framework",
    distribution="tracefork-agent-framework",
    framework="agent-framework-core",
    seams=(
        "workflows, nodes, agents and model calls: steps",
        "tools, below middleware and approvals",
    ),
)

__all__ = ["ADAPTER", "__version__", "attach", "detach", "leave_live"]

__getattr__ = lazy_names(__name__, attachment=("attach", "detach"), live_tools=("leave_live",))
