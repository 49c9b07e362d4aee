"""Replace parts of Strands Agents while a session is open."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType

from tracefork_bedrock.strands import ADAPTER
from tracefork_core.adapters import Patches


def _put_in(patches: Patches, _: ModuleType) -> None:
    # Strands is imported by now, so these imports cost no more time.
    from tracefork_bedrock.strands import misses, sessions, steps, tool_changes, tools

    for part in (steps, tools, tool_changes, misses, sessions):
        part.put_in(patches)
    if find_spec("strands.storage") is not None:
        from tracefork_bedrock.strands import storages

        storages.put_in(patches)


def _put_in_graphs(patches: Patches, _: ModuleType) -> None:
    from tracefork_bedrock.strands import graphs

    graphs.put_in(patches)


INSTRUMENT = ADAPTER.instrument("strands", _put_in)
GRAPHS = ADAPTER.instrument("strands.multiagent", _put_in_graphs)
"""Every session applies each, once its module is imported."""
