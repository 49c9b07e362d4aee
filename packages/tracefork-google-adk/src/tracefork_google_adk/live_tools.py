"""Decide which tools run in replays too: what they ask is on the tape, or they ask nothing.

| tool | why |
|---|---|
| `AgentTool`, `NodeTool` and agents that ADK offers as tools | their runs make exchanges |
| `McpTool`, `LoadMcpResourceTool` | tracefork-mcp records what they ask |
| `request_input`, `get_user_choice` | they only wait for the user |

Every other tool is answered from the tape, one that runs long among them: its function begins the
work, and a replay must not begin it again. Its result, None mostly, is on the tape. Tools of ADK
that only steer the run (transfers, `exit_loop`, the end of a task, structured output) are answered
too: what they did to the run is part of their result, and a fork may always call them.
"""

from __future__ import annotations

from typing import Any, TypeVar

from google.adk.tools.base_tool import BaseTool

from tracefork_core import UsageError

T = TypeVar("T")

_MARK = "_tracefork_leave_live"
_CLASSES = frozenset(
    (
        "google.adk.tools.agent_tool.AgentTool",
        "google.adk.tools._node_tool.NodeTool",
        "google.adk.tools.mcp_tool.mcp_tool.McpTool",
        "google.adk.tools.load_mcp_resource_tool.LoadMcpResourceTool",
    )
)
"""By name: importing them would import MCP."""
_FUNCTIONS = frozenset(
    (
        "google.adk.tools.get_user_choice_tool.get_user_choice",
        "google.adk.tools._request_input_tool._request_input_func",
    )
)
_STEERING = frozenset(
    (
        "google.adk.agents.llm.task._finish_task_tool.FinishTaskTool",
        "google.adk.tools.exit_loop_tool.exit_loop",
        "google.adk.tools.set_model_response_tool.SetModelResponseTool",
        "google.adk.tools.transfer_to_agent_tool.transfer_to_agent",
    )
)


def leave_live(tool: T) -> T:
    """Let a tool run in replays too, and return it.

    Use it for a tool that runs agents, or that changes what the tape does not hold. What the tool
    asks and reads is then on the tape as if the program itself did it, so each of its requests is
    an exchange.

    Args:
        tool: a tool of ADK, or the function below it.

    Raises:
        UsageError: it is neither a tool nor a function.
    """
    if not isinstance(tool, BaseTool) and not callable(tool):
        raise UsageError(f"tracefork: {tool!r:.60} is neither a tool of ADK nor a function.")
    setattr(tool, _MARK, True)
    return tool


def is_left_live(tool: Any) -> bool:
    """Return whether a tool runs in replays too."""
    function = getattr(tool, "func", None)
    return (
        getattr(tool, _MARK, False)
        or getattr(function, _MARK, False)
        or any(_name(kind) in _CLASSES for kind in type(tool).__mro__)
        or _name(function) in _FUNCTIONS
    )


def only_steers(tool: Any) -> bool:
    """Return whether a tool of ADK does nothing but steer the run: it has no side effect."""
    named = (*type(tool).__mro__, getattr(tool, "func", None))
    return any(_name(one) in _STEERING for one in named)


def _name(named: Any) -> str:
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', '')}"
