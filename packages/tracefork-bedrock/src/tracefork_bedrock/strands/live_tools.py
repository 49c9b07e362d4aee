"""Decide which tools run in replays too: those that run agents, and those of Strands itself.

A replay answers a tool from the tape. It must not do so for a tool whose own calls are exchanges:
an agent as a tool, or a tool of an MCP server, which tracefork-mcp records. Nor may it for a tool
that Strands gives an agent to work on the run itself, such as the hand-off of a swarm or the tool
that takes structured output: these ask nothing outside, and the rest of the run needs what they do.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any, TypeVar

from strands.agent.agent import Agent
from strands.tools.decorator import DecoratedFunctionTool
from strands.tools.mcp.mcp_agent_tool import MCPAgentTool
from strands.tools.structured_output.structured_output_tool import StructuredOutputTool
from strands.types.tools import AgentTool

from tracefork_core import UsageError
from tracefork_core.adapters import answering_tape, recorded_tool

T = TypeVar("T")

_MARK = "_tracefork_is_live"
_OUTSIDE = (
    *("strands.vended_tools._bash", "strands.vended_tools.bash", "strands.vended_tools.shell"),
    *("strands.vended_tools.a2a_client", "strands.vended_tools.file_editor"),
    *("strands.vended_tools.http_request", "strands.vended_tools.web_fetch"),
    "strands.vended_tools.python_repl",
)
"""The tools of Strands that reach outside of the run."""


def leave_live(tool: T) -> T:
    """Let a tool run in replays too, and return it.

    Use it for a tool that runs agents. What the tool asks is then on the tape as if the program
    itself did it: each model call inside is an exchange with a step.

    Args:
        tool: what `@tool` made, or the function below it.

    Raises:
        UsageError: it is neither a tool nor a function.
    """
    if not isinstance(tool, AgentTool) and not callable(tool):
        raise UsageError(f"tracefork: {tool!r:.60} is neither a tool nor a function.")
    setattr(tool, _MARK, True)
    return tool


def is_live(tool: Any) -> bool:
    """Return whether a tool runs in replays too."""
    function = function_of(tool)
    if getattr(tool, _MARK, False) or getattr(function, _MARK, False):
        return True
    if isinstance(tool, (MCPAgentTool, StructuredOutputTool)) or is_agent(tool):
        return True
    home = str(getattr(function, "__module__", None) or type(tool).__module__)
    return home.startswith("strands.") and not home.startswith(_OUTSIDE)


def is_agent(tool: Any) -> bool:
    """Return whether a tool is an agent."""
    return isinstance(getattr(tool, "agent", None), Agent)


def function_of(tool: Any) -> Any:
    """Return the function of the user's below a tool; None if it has none."""
    if isinstance(tool, DecoratedFunctionTool):
        return inspect.unwrap(tool._tool_func)  # noqa: SLF001 - nothing public tells
    return getattr(tool, "_tool_func", None)


def warn_of_agent_in_tool(agent: str) -> None:
    """Warn of an agent that runs inside a tool that is one exchange: its calls are not seen."""
    name = recorded_tool()
    if name is None or answering_tape() is not None:
        return
    warnings.warn(
        f"tracefork: the tool {name} runs the agent {agent}. Its model calls are part of the "
        "tool's result, so no fork or blame can look inside. To record them one by one, mark the "
        "tool with tracefork_bedrock.strands.leave_live(tool).",
        stacklevel=3,
    )
