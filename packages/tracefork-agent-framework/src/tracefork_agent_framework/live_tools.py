"""Decide which tools run in replays too: what they ask is on the tape, or they ask nothing.

Agents as tools run in replays, because their runs make exchanges, and so do the tools of MCP
servers, whose calls tracefork-mcp records. Every other tool is answered from the tape.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from agent_framework import FunctionTool

from tracefork_core import UsageError

T = TypeVar("T")

_MARK = "_tracefork_leave_live"
_HOMES = frozenset(("agent_framework._agents", "agent_framework._mcp"))
"""The modules whose functions run agents, or call MCP servers."""


def leave_live(tool: T) -> T:
    """Let a tool run in replays too, and return it.

    Use it for a tool that runs agents, adds tools to the run, or changes what the tape does not
    hold. What the tool asks and reads is then on the tape as if the program itself did it, so each
    of its requests is an exchange.

    Args:
        tool: what `@tool` made, or the function below it.

    Raises:
        UsageError: it is neither a tool nor a function.
    """
    if not isinstance(tool, FunctionTool) and not callable(tool):
        raise UsageError(f"tracefork: {tool!r:.60} is neither a FunctionTool nor a function.")
    setattr(tool, _MARK, True)
    return tool


def is_left_live(tool: Any) -> bool:
    """Return whether a tool runs in replays too."""
    function = tool.func
    while isinstance(function, partial):
        function = function.func
    return (
        getattr(tool, _MARK, False)
        or getattr(function, _MARK, False)
        or getattr(function, "__module__", None) in _HOMES
    )
