"""Replace parts of the OpenAI Agents SDK while a session is open."""

from __future__ import annotations

from types import ModuleType

from tracefork_core.adapters import Patches
from tracefork_openai_agents import ADAPTER, refusals


def _put_in(patches: Patches, _: ModuleType) -> None:
    # The SDK is imported by now, so these imports cost no more time.
    from tracefork_openai_agents import (
        handoffs,
        hosted_tools,
        local_tools,
        models,
        sessions,
        steps,
        tools,
        websockets,
    )

    for part in (
        *(steps, models, websockets, sessions),
        *(handoffs, tools, local_tools, hosted_tools),
    ):
        part.put_in(patches)


INSTRUMENT = ADAPTER.instrument("agents", _put_in)
"""Every session applies it, once `agents` is imported."""


REALTIME = ADAPTER.instrument("agents.realtime", refusals.put_in_realtime)
VOICE = ADAPTER.instrument("agents.voice", refusals.put_in_voice)
"""What sessions refuse: these modules are imported only where they are used."""
