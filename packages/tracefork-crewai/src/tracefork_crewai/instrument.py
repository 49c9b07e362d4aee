"""Replace parts of CrewAI while a session is open, and restore them when it ends."""

from __future__ import annotations

from types import ModuleType

from tracefork_core.adapters import Patches
from tracefork_crewai import ADAPTER, hermetic


def _put_in(patches: Patches, _: ModuleType) -> None:
    # CrewAI is imported by now, so these imports cost no more time.
    from tracefork_crewai import (
        clients,
        converting,
        crew_checkpoints,
        executors,
        flow_states,
        knowledge,
        mcp_clients,
        memory,
        misses,
        planning,
        steps,
        task_outputs,
        tools,
        trained_agents,
    )

    asked = (hermetic, clients, misses, steps, converting, planning, executors)
    done = (tools, memory, knowledge, mcp_clients)
    kept = (flow_states, task_outputs, crew_checkpoints, trained_agents)
    for part in (*asked, *done, *kept):
        part.put_in(patches)


INSTRUMENT = ADAPTER.instrument("crewai", _put_in, hermetic.prepare)
"""Every session applies it, once `crewai` is imported."""
