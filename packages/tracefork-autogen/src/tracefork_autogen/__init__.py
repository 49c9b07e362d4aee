"""AutoGen for tracefork: replay a team without calling its tools again, and blame its agents.

Names are loaded when they are first used: importing this package imports no framework.

With this package installed, a session records a run of AutoGen without any change to it. The steps
of its tape are teams, agents, messages of autogen-core, model calls and tools.

    attach, detach     record a team, an agent or a client in a session with ambient=False

`instrument` says what is replaced while a session is open. `teams`, `agents`, `runtimes` and
`models` make steps, and `causes` knows what led to each of them. `attachment` and `clients` are for
sessions with ambient=False.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter

if TYPE_CHECKING:
    from tracefork_autogen.attachment import attach, detach

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="autogen",
    distribution="tracefork-autogen",
    framework="autogen-agentchat",
    seams=(
        "teams, agents, messages and model calls: steps",
        "tools, below workbenches",
    ),
)

_HOMES = {
    "attach": "tracefork_autogen.attachment",
    "detach": "tracefork_autogen.attachment",
}

__all__ = [
    "ADAPTER",
    "__version__",
    "attach",
    "detach",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
