"""CrewAI for tracefork: find the Task that broke the crew.

With this package installed, a session records a crew without any change to it. The steps of its
tape are the crew's tasks, agents, tools and model calls.

    record, replay     core's own: with record("run.tape"): make_crew().kickoff(inputs)
    fork               replay up to a Task, replace its answer, and continue from there
    blame              find the Task that made a run fail, then the agent, model call or tool in it
    attach, detach     record one crew, flow, agent or LLM in a session with ambient=False
    leave_live         let a tool run in replays too

Names are loaded when they are first used: importing this package imports no framework.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter

if TYPE_CHECKING:
    from tracefork_core import record, replay
    from tracefork_crewai.attachment import attach, detach
    from tracefork_crewai.live_tools import leave_live
    from tracefork_crewai.trial import blame, fork

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="crewai",
    distribution="tracefork-crewai",
    framework="crewai",
    seams=(
        "httpx: LLMs of OpenAI and compatible APIs, Anthropic, Gemini and LiteLLM",
        "aiohttp: Gemini, Azure and LiteLLM in async code; requests: Azure",
        "tools, memory, knowledge and MCP clients, below CrewAI's own handling",
        "CrewAI's event scope: steps",
    ),
)

_HOMES = {
    "attach": "tracefork_crewai.attachment",
    "blame": "tracefork_crewai.trial",
    "detach": "tracefork_crewai.attachment",
    "fork": "tracefork_crewai.trial",
    "leave_live": "tracefork_crewai.live_tools",
    "record": "tracefork_core",
    "replay": "tracefork_core",
}

__all__ = [
    "ADAPTER",
    "__version__",
    "attach",
    "blame",
    "detach",
    "fork",
    "leave_live",
    "record",
    "replay",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
