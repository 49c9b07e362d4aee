"""Replace parts of AutoGen while a session is open.

The two packages of AutoGen are replaced apart: a program that uses autogen-core only never imports
autogen-agentchat, and a session does not do it in its place.
"""

from __future__ import annotations

from types import ModuleType

from tracefork_autogen import ADAPTER
from tracefork_core.adapters import Patches


def _put_in_core(patches: Patches, _: ModuleType) -> None:
    # autogen-core is imported by now, or loads what follows when it is first used.
    from tracefork_autogen import (
        caches,
        executors,
        memories,
        models,
        runtimes,
        token_counts,
        tools,
        workbenches,
    )

    made = (models, runtimes, tools, workbenches, executors)
    for part in (*made, memories, caches, token_counts):
        part.put_in(patches)


def _put_in_agentchat(patches: Patches, _: ModuleType) -> None:
    from tracefork_autogen import agents, people, states, teams, tool_calls

    for part in (agents, teams, tool_calls, people, states):
        part.put_in(patches)


INSTRUMENT = ADAPTER.instrument("autogen_core", _put_in_core)
"""Every session applies it, once `autogen_core` is imported."""

AGENTCHAT = ADAPTER.instrument("autogen_agentchat", _put_in_agentchat)
"""Every session applies it, once `autogen_agentchat` is imported."""
