"""OpenAI Agents for tracefork: find the agent that gave the wrong hand-off.

With this package installed, a session records a run of the OpenAI Agents SDK without any change to
it. The steps of its tape are runs, agents, turns, model calls, tools, hand-offs and guardrails.

    attach, detach     record an agent in a session with ambient=False

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `steps` makes steps of the SDK's spans,
`models` prepares the models of a run, `tools` and `local_tools` make exchanges of tool calls with
`tool_calls`, and `tool_values` converts their results. `attachment` is for sessions with
ambient=False.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter

if TYPE_CHECKING:
    from tracefork_openai_agents.attachment import attach, detach

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="openai-agents",
    distribution="tracefork-openai-agents",
    framework="openai-agents",
    seams=(
        "httpx2: models of OpenAI, Azure and compatible APIs",
        "tools, below approvals, guardrails and hooks",
        "spans: steps",
    ),
)

_HOMES = {
    "attach": "tracefork_openai_agents.attachment",
    "detach": "tracefork_openai_agents.attachment",
}

__all__ = ["ADAPTER", "__version__", "attach", "detach"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
