"""Replace parts of ADK while a session is open."""

from __future__ import annotations

from types import ModuleType

from tracefork_core.adapters import Patches
from tracefork_google_adk import ADAPTER


def _put_in(patches: Patches, _: ModuleType) -> None:
    # ADK is imported by now, or loads what follows when it is first used.
    from tracefork_google_adk import misses, refusals, sessions, steps, tools, workflows

    for part in (steps, workflows, tools, misses, sessions, refusals):
        part.put_in(patches)


INSTRUMENT = ADAPTER.instrument("google.adk", _put_in)
"""Every session applies it, once `google.adk` is imported."""
