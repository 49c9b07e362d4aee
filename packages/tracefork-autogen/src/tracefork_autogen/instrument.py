"""Say what is replaced while a session is open."""

from __future__ import annotations

from types import ModuleType

from tracefork_autogen import ADAPTER
from tracefork_core.adapters import Patches


def _put_in(patches: Patches, module: ModuleType) -> None:
    """Replace nothing yet."""


INSTRUMENT = ADAPTER.instrument("autogen_core", _put_in)
"""Every session applies it, once `autogen_core` is imported: see the entry point."""
