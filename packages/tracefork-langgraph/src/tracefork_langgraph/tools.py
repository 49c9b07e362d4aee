"""Bind tools: record each call as an exchange, and answer it from the tape in a replay.

Binding wraps the work of the tool, below LangChain's own `run`. So at replay too, LangChain calls
the callbacks, validates the arguments and handles errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from langchain_core.tools import BaseTool

from tracefork_core import UsageError
from tracefork_core.adapters import Effect
from tracefork_langgraph import search
from tracefork_langgraph.tool_calls import Binding
from tracefork_langgraph.tool_effects import effect_of, is_declared, is_left_live, raised_by

T = TypeVar("T", bound=BaseTool)
X = TypeVar("X")

# LangChain calls these. The tool's own dictionary takes precedence over its class.
_RUN, _ARUN = "_run", "_arun"


def bind_tool(
    tool: T, *, effect: Effect | None = None, raises: Iterable[type[Exception]] = ()
) -> T:
    """Record the calls of a tool as exchanges of the current session; return it.

    It returns the same object. Outside a session nothing changes. A second call changes nothing.

    Args:
        tool: a LangChain tool.
        effect: its side effect, if the tool does not declare it. A fork does not repeat a write
            unless you allow it, and treats an unknown effect as a write.
        raises: exceptions to raise again as the same class, built from their message only. Builtin
            exceptions, `ToolException` and those that the tool's code names need no listing.

    Raises:
        UsageError: `tool` is not a tool, its effect is unknown, or `raises` lists something that is
            not an exception class.
    """
    if not isinstance(tool, BaseTool):
        raise UsageError(
            f"tracefork: cannot bind {type(tool).__module__}.{type(tool).__qualname__}: it is not "
            "a LangChain tool. To record a function, decorate it with @tracefork.tool."
        )
    if not is_bound(tool):
        _bind(tool, Binding(tool, effect_of(tool, effect), raised_by(tool, raises)))
    return tool


def bound_copy(tool: T) -> T:
    """Return a bound copy of a tool. The original still does the work.

    Raises:
        UsageError: the tool declares an unknown effect.
    """
    copy: T = tool.model_copy()
    _bind(copy, Binding(tool, effect_of(tool), raised_by(tool)))
    return copy


def unbind_tool(tool: T) -> T:
    """Undo `bind_tool`: the tool runs in replays too; return it."""
    for name in (_RUN, _ARUN):
        vars(tool).pop(name, None)
    return tool


def is_bound(tool: BaseTool) -> bool:
    """Return whether a tool is bound."""
    return _RUN in vars(tool)


def bind_tools(x: X) -> X:
    """Bind every tool that a graph or another runnable holds, with three exceptions; return it.

    It skips tools with `metadata={"tracefork": "live"}`. It skips tools that lead to models or
    graphs: they are agents, and each of their requests is on the tape already. It skips tools that
    receive the agent's store: a replay would lack what they put there. `bind_tool` binds these too.

    Raises:
        UsageError: a tool declares an unknown effect.
    """
    for tool in list(search.tools(x)):
        if not is_left_live(tool):
            bind_tool(tool)
    return x


def bind_declared_tools(x: object) -> None:
    """Bind the tools in `x` that declare their side effect.

    Other tools run again in a replay. That is right for a tool that only computes (the replay then
    notices changes in its code), that sends HTTP requests (which are on the tape anyway), or that
    keeps data in the process.
    """
    for tool in list(search.tools(x)):
        if is_declared(tool):
            bind_tool(tool)


def unbind_tools(x: X) -> X:
    """Undo `bind_tools`: all tools of a graph or another runnable run in replays too; return it."""
    for tool in list(search.tools(x)):
        unbind_tool(tool)
    return x


def _bind(tool: BaseTool, binding: Binding) -> None:
    vars(tool).update({_RUN: binding.wrapped(), _ARUN: binding.awrapped()})
