"""Replace parts of pydantic-ai while a session is open."""

from __future__ import annotations

from types import ModuleType

from tracefork_core.adapters import Patches
from tracefork_pydantic_ai import ADAPTER


def _put_in(patches: Patches, _: ModuleType) -> None:
    # pydantic-ai is imported by now, or loads what follows when it is first used.
    from tracefork_pydantic_ai import graphs, models, steps, tools

    for part in (steps, models, graphs, tools):
        part.put_in(patches)


INSTRUMENT = ADAPTER.instrument("pydantic_ai", _put_in)
"""Every session applies it, once `pydantic_ai` is imported: see the entry point."""
