"""Google ADK for tracefork: replay an agent without calling its tools again, and fork its sessions.

With this package installed, a session records a run of Google's Agent Development Kit without any
change to it. The steps of its tape are runs, agents, workflows, nodes, model calls, transfers and
tools.

    fork_session       begin a new session with the first events of a recorded one
    import_recording   make a tape of what `adk conformance record` has written
    leave_live         let a tool run in replays too
    attach, detach     record an agent in a session with ambient=False

Names are loaded when they are first used: importing this package imports no framework.

`instrument` says what is replaced while a session is open. `steps` makes steps of runs, agents and
model calls, `workflows` of nodes and joins, and `misses` lets a divergence through. `tools` makes
exchanges of tool calls, `live_tools` says which run in replays too, `actions` notes what a tool did
besides returning a result, and `values` converts results. `credentials` lets Vertex AI be replayed
without any. `sessions` and `stored_sessions` keep a replay away from the sessions of other runs,
`session_notes` says what a tape has of them, and `session_forks` makes new ones of that.
`recordings` makes tapes of ADK's own recordings. `refusals` says what no session records.
`attachment` and `clients` are for sessions with ambient=False.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

if TYPE_CHECKING:
    from tracefork_google_adk.attachment import attach, detach
    from tracefork_google_adk.live_tools import leave_live
    from tracefork_google_adk.recordings import import_recording
    from tracefork_google_adk.session_forks import fork_session

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="google-adk",
    distribution="tracefork-google-adk",
    framework="google-adk",
    seams=(
        "runs, agents, nodes and model calls: steps",
        "tools, below callbacks and confirmations",
    ),
)

__all__ = [
    "ADAPTER",
    "__version__",
    "attach",
    "detach",
    "fork_session",
    "import_recording",
    "leave_live",
]

__getattr__ = lazy_names(
    __name__,
    attachment=("attach", "detach"),
    live_tools=("leave_live",),
    recordings=("import_recording",),
    session_forks=("fork_session",),
)
