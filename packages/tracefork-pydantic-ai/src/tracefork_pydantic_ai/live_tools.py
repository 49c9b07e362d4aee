"""Decide which tools run in replays too: those that run agents, whose calls are exchanges.

A replay answers a tool from the tape. It must not do so for a tool that runs an agent: each model
call inside is an exchange of its own, and a fork may begin there. pydantic-ai has no class for such
tools; any function may run an agent. So the function says it: it names an agent, or the class of
agents, and a method that runs one (`agent_references`). The answer is the same in each process,
before the tool has done anything. A function that gets its agent from elsewhere needs a mark.

Toolsets of MCP servers run in replays, too: tracefork-mcp records what they ask.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from pydantic_ai import Agent
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import AbstractToolset

from tracefork_core import UsageError
from tracefork_core.adapters import Patches, answering_tape, in_session, recorded_tool, tool_mark
from tracefork_pydantic_ai.agent_references import runs_agents

T = TypeVar("T")

_MARK = "_tracefork_leave_live"


def put_in(patches: Patches) -> None:
    """Warn of agents that run inside a tool that is one exchange."""
    patches.wrap(Agent, "iter", _warning)


def leave_live(tool: T) -> T:
    """Let a tool run in replays too, and return it.

    Use it for a tool that runs agents where tracefork does not see that, or that changes what the
    tape does not hold. What the tool asks is then on the tape as if the program itself did it: each
    model call inside is an exchange with a step.

    Args:
        tool: a tool of pydantic-ai, the function below it, or a toolset, for all of its tools.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(tool, (Tool, AbstractToolset)) and not callable(tool):
        raise UsageError(
            f"tracefork: {tool!r:.60} is neither a tool of pydantic-ai nor a function or toolset."
        )
    setattr(tool, _MARK, True)
    return tool


def is_left_live(toolset: Any, tool: Any, function: Any, deps: object) -> bool:
    """Return whether a tool of a toolset runs in replays too.

    Args:
        toolset: the toolset that calls the tool.
        tool: the tool of pydantic-ai, if the toolset is one of functions.
        function: what does the work.
        deps: the dependencies of the run.
    """
    if any(getattr(marked, _MARK, False) for marked in (toolset, tool, function)):
        return True
    # A function that says its side effect with @tracefork.tool is meant to be one exchange.
    return tool_mark(function) is None and runs_agents(function, deps)


def _warning(begin: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(begin)
    def begun(self: Any, *args: Any, **options: Any) -> Any:
        name = recorded_tool()
        if name is not None and in_session() and answering_tape() is None:
            warnings.warn(
                f"tracefork: the tool {name} runs the agent {self.name or 'without a name'}. Its "
                "model calls are part of the tool's result, so no fork or blame can look inside. "
                "To record them one by one, mark the tool with "
                "tracefork_pydantic_ai.leave_live(tool).",
                stacklevel=2,
            )
        return begin(self, *args, **options)

    return begun
