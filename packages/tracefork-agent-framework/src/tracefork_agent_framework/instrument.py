"""Say what is replaced while a session is open."""

from __future__ import annotations

from types import ModuleType

from tracefork_agent_framework import ADAPTER
from tracefork_core.adapters import Patches


def _put_in(patches: Patches, module: ModuleType) -> None:
    """Replace nothing yet."""


INSTRUMENT = ADAPTER.instrument("agent_framework", _put_in)
"""Every session applies it, once `agent_framework` is imported: see the entry point."""
