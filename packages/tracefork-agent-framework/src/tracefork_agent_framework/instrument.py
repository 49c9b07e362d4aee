"""Replace parts of Agent Framework while a session is open."""

from __future__ import annotations

from types import ModuleType

from tracefork_agent_framework import ADAPTER
from tracefork_core.adapters import Patches


def _put_in(patches: Patches, _: ModuleType) -> None:
    # The framework is imported by now, so these imports cost no more time.
    from tracefork_agent_framework import (
        checkpoints,
        histories,
        steps,
        streams,
        tools,
        workflows,
    )

    for part in (streams, steps, workflows, tools, checkpoints, histories):
        part.put_in(patches)


INSTRUMENT = ADAPTER.instrument("agent_framework", _put_in)
"""Every session applies it, once `agent_framework` is imported: see the entry point."""
