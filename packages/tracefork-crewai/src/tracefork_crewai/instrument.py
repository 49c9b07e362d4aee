"""Replace parts of CrewAI while a session is open, and restore them when it ends."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType

from tracefork_core.adapters import Instrument
from tracefork_crewai import hermetic
from tracefork_crewai.replacing import unknown


def _apply(_: ModuleType) -> Callable[[], None]:
    try:
        return _instrument()
    except (AttributeError, ImportError, KeyError) as error:
        raise unknown(str(error)) from error


def _instrument() -> Callable[[], None]:
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

    with ExitStack() as stack:
        asked = (hermetic, clients, misses, steps, converting, planning, executors)
        done = (tools, memory, knowledge, mcp_clients)
        kept = (flow_states, task_outputs, crew_checkpoints, trained_agents)
        for part in (*asked, *done, *kept):
            stack.callback(part.instrument())
        return stack.pop_all().close


INSTRUMENT = Instrument("crewai", _apply, hermetic.prepare)
"""Every session applies it, once `crewai` is imported."""
