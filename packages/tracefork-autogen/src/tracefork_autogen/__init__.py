"""AutoGen for tracefork: replay a team without calling its tools again, and blame its agents.

Names are loaded when they are first used: importing this package imports no framework.

With this package installed, a session records a run of AutoGen without any change to it. The steps
of its tape are teams, agents, messages of autogen-core, model calls and tools.

    attach, detach     record a team, an agent or a client in a session with ambient=False
    leave_live         let a tool run in replays too
    fork_state         the state of a recorded team, for a new one to go on from

`instrument` says what is replaced while a session is open. `teams`, `agents`, `runtimes` and
`models` make steps, and `causes` knows what led to each of them. `attachment` and `clients` are for
sessions with ambient=False. `tools`, `workbenches`, `executors`, `people` and `memories` make
exchanges of calls (see `exchanges`), whose results `values` converts. `live_tools` says which tools
run in replays, too. `tool_calls` keeps agents from hanging. `caches` and `token_counts` answer from
the tape what a machine may have at hand. `states` keeps what teams had in mind, for `state_forks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

if TYPE_CHECKING:
    from tracefork_autogen.attachment import attach, detach
    from tracefork_autogen.live_tools import leave_live
    from tracefork_autogen.state_forks import fork_state

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="autogen",
    distribution="tracefork-autogen",
    framework="autogen-agentchat",
    seams=(
        "teams, agents, messages and model calls: steps",
        "tools, below workbenches, code executors and user proxies: exchanges",
    ),
)

__all__ = [
    "ADAPTER",
    "__version__",
    "attach",
    "detach",
    "fork_state",
    "leave_live",
]

__getattr__ = lazy_names(
    __name__,
    attachment=("attach", "detach"),
    live_tools=("leave_live",),
    state_forks=("fork_state",),
)
