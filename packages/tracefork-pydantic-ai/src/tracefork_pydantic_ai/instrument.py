"""Say what is replaced while a session is open."""

from __future__ import annotations

from types import ModuleType

from tracefork_core.adapters import Patches
from tracefork_pydantic_ai import ADAPTER


def _put_in(patches: Patches, module: ModuleType) -> None:
    """Replace nothing yet."""


INSTRUMENT = ADAPTER.instrument("pydantic_ai", _put_in)
"""Every session applies it, once `pydantic_ai` is imported: see the entry point."""
