"""Decide which tools run in replays too: what they ask is on the tape.

| tool | why |
|---|---|
| `AgentTool`, `TeamTool` and classes derived from `TaskRunnerTool` | their runs make exchanges |
| `McpToolAdapter`, `McpWorkbench` | tracefork-mcp records what they ask |
| `UpdateFileTool`, `ApplyPatchTool` | they edit a canvas in the program, which prompts show |

Every other tool is answered from the tape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from autogen_core.tools import BaseTool, FunctionTool

from tracefork_core import UsageError

T = TypeVar("T")

_MARK = "_tracefork_leave_live"
_CLASSES = frozenset(
    (
        "autogen_agentchat.tools._task_runner_tool.TaskRunnerTool",
        "autogen_ext.memory.canvas._canvas_writer.ApplyPatchTool",
        "autogen_ext.memory.canvas._canvas_writer.UpdateFileTool",
        "autogen_ext.tools.mcp._base.McpToolAdapter",
        "autogen_ext.tools.mcp._workbench.McpWorkbench",
    )
)
"""By name: importing them would import agents and MCP."""
_HANDOFF = "Handoff.handoff_tool.<locals>._handoff_tool"


def leave_live(tool: T) -> T:
    """Let a tool run in replays too, and return it.

    Use it for a tool that runs agents, or that changes what the tape does not hold: an object of
    your program, the state of a `BaseToolWithState`. What the tool asks and reads is then on the
    tape as if the program itself did it, so each of its requests is an exchange.

    Args:
        tool: a tool of AutoGen, or the function below it.

    Raises:
        UsageError: it is neither a tool nor a function.
    """
    if not isinstance(tool, BaseTool) and not callable(tool):
        raise UsageError(f"tracefork: {tool!r:.60} is neither a tool of AutoGen nor a function.")
    setattr(tool, _MARK, True)
    return tool


def is_left_live(tool: Any) -> bool:
    """Return whether a tool or a workbench runs in replays too."""
    return (
        getattr(tool, _MARK, False)
        or getattr(function_of(tool), _MARK, False)
        or any(f"{kind.__module__}.{kind.__qualname__}" in _CLASSES for kind in type(tool).__mro__)
    )


def function_of(tool: Any) -> Callable[..., Any] | None:
    """Return the function below a tool, if it has one."""
    return tool._func if isinstance(tool, FunctionTool) else None  # noqa: SLF001 - nothing public tells


def handoff_target(tool: Any) -> str | None:
    """Return the agent that a tool hands over to; None if it is no tool of a `Handoff`."""
    function: Any = function_of(tool)
    if getattr(function, "__qualname__", "") != _HANDOFF:
        return None
    (cell,) = function.__closure__
    return str(cell.cell_contents.target)
