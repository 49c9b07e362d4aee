"""Strands Agents for tracefork: steps with names, and tools that run once, whatever the model.

With this package installed, a session records agents, graphs and swarms without any change to
them. The steps of its tape are runs, nodes, agents, turns, model calls, tools and hand-offs.

    leave_live         let a tool run in replays too
    attach, detach     record an agent in a session with ambient=False

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `steps` makes the steps of agents and
models, `graphs` those of graphs and swarms. `tools` makes exchanges of tool calls, `live_tools`
says which run in replays too, `tool_changes` notes what a tool changes besides its result, and
`tool_values` converts results. `sessions` stands in for repositories of sessions, and `storages`
for storages, where snapshots and memories are. `misses` lets a divergence through, and `attachment`
is for sessions with ambient=False.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

if TYPE_CHECKING:
    from tracefork_bedrock.strands.attachment import attach, detach
    from tracefork_bedrock.strands.live_tools import leave_live

ADAPTER = Adapter(
    name="strands",
    distribution="tracefork-bedrock",
    framework="strands-agents",
    seams=(
        "models: the clients of their providers",
        "AgentTool.stream: tools, below hooks, middleware and approvals",
        "agents, graphs and swarms: steps",
    ),
)

__all__ = ["ADAPTER", "attach", "detach", "leave_live"]

__getattr__ = lazy_names(__name__, attachment=("attach", "detach"), live_tools=("leave_live",))
