"""OpenAI Agents for tracefork: find the agent that gave the wrong hand-off.

With this package installed, a session records a run of the OpenAI Agents SDK without any change to
it. The steps of its tape are runs, agents, turns, model calls, tools, hand-offs and guardrails.

    leave_live         let a tool run in replays too
    attach, detach     record an agent in a session with ambient=False

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `steps` makes steps of the SDK's spans,
`models` prepares the models of a run, and `misses` lets a divergence through. `tools`,
`local_tools` and `tool_calls` make exchanges of tool calls, `live_tools` says which run in replays
too, `hosted_tools` makes steps of those at the provider, and `tool_values` converts results.
`handoffs` puts hand-offs on the tape, `websockets` makes exchanges of what models are asked over a
websocket, and `sessions` stands in for the SDK's memory of conversations. `refusals` says what no
session records, and `attachment` is for sessions with ambient=False.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

if TYPE_CHECKING:
    from tracefork_openai_agents.attachment import attach, detach
    from tracefork_openai_agents.live_tools import leave_live

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="openai-agents",
    distribution="tracefork-openai-agents",
    framework="openai-agents",
    seams=(
        "httpx2: models of OpenAI, Azure and compatible APIs",
        "websockets: models of OpenAI's Responses API",
        "tools, below approvals, guardrails and hooks",
        "spans: steps",
        "Session: conversations of earlier runs",
    ),
)

__all__ = ["ADAPTER", "__version__", "attach", "detach", "leave_live"]

__getattr__ = lazy_names(__name__, attachment=("attach", "detach"), live_tools=("leave_live",))
