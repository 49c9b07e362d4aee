"""Claude Agent SDK for tracefork: replay an agent without starting Claude Code.

The SDK starts the command line of Claude Code and exchanges JSON lines with it. With this package
installed, a session records those lines without any change to the agent, and a replay answers from
the tape: Claude Code does not start, so its tools do not run again.

    attach     record a transport of your own, and return it
    detach     undo `attach`

Names are loaded when they are first used: importing this package imports no framework.

Layout: `instrument` replaces methods of the SDK while a session is open, `connection` is the state
of one connection, `pending` an exchange while it lasts, `lines` reads and builds the JSON lines,
`process` starts Claude Code when a call is live, `steps` makes steps of what Claude Code reports,
`tools` records the tools that run in the agent's process, `failures` are errors of the SDK, and
`formats` says how exchanges read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracefork_core.adapters import Adapter, lazy_names

if TYPE_CHECKING:
    from tracefork_claude_agent_sdk.attachment import attach, detach

__version__ = "0.1.0"

ADAPTER = Adapter(
    name="claude-agent-sdk",
    distribution="tracefork-claude-agent-sdk",
    framework="claude-agent-sdk",
    seams=("the JSON lines between the SDK and Claude Code",),
)

__all__ = ["ADAPTER", "__version__", "attach", "detach"]

__getattr__ = lazy_names(__name__, attachment=("attach", "detach"))
