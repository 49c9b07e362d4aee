"""Bind tools: a call of one is an exchange, recorded once and answered from the tape after that.

What is wrapped is the work of the tool, below LangChain's own `run`: its callbacks are told, its
arguments are validated, and its errors are handled at replay as they were in the recording.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from langchain_core.tools import BaseTool

from tracefork_core import UsageError
from tracefork_langgraph import search
from tracefork_langgraph.tool_calls import Binding
from tracefork_langgraph.tool_effects import Effect, effect_of, is_declared, is_left_live, raised_by

T = TypeVar("T", bound=BaseTool)
X = TypeVar("X")

# In the tool's own dictionary, before those of its class: what LangChain calls to do the work.
_RUN, _ARUN = "_run", "_arun"


def bind_tool(
    tool: T, *, effect: Effect | None = None, raises: Iterable[type[Exception]] = ()
) -> T:
    """Make the calls of a tool exchanges of whatever session is current; return it.

    The same object comes back. Outside a session nothing changes; binding twice is binding once.

    Args:
        tool: a LangChain tool.
        effect: what it does to the world, where the tool does not say so itself. A fork repeats no
            write unless told to, and what nobody knows may be one.
        raises: exceptions that come back as what they are, built from their message alone, beside
            the builtin ones, `ToolException` and those that the tool's code names.

    Raises:
        UsageError: it is no tool, names an effect that is none, or lists what is no exception.
    """
    if not isinstance(tool, BaseTool):
        raise UsageError(
            f"tracefork: cannot bind {type(tool).__module__}.{type(tool).__qualname__}: it is no "
            "LangChain tool. Put @tracefork.tool above a function."
        )
    if not is_bound(tool):
        _bind(tool, Binding(tool, effect_of(tool, effect), raised_by(tool, raises)))
    return tool


def bound_copy(tool: T) -> T:
    """Return a tool that is bound, and lets `tool` do its work.

    Raises:
        UsageError: it names no effect.
    """
    copy: T = tool.model_copy()
    _bind(copy, Binding(tool, effect_of(tool), raised_by(tool)))
    return copy


def unbind_tool(tool: T) -> T:
    """Let a tool run again whoever calls it; return it."""
    for name in (_RUN, _ARUN):
        vars(tool).pop(name, None)
    return tool


def is_bound(tool: BaseTool) -> bool:
    """Return whether the calls of a tool are exchanges."""
    return _RUN in vars(tool)


def bind_tools(x: X) -> X:
    """Bind every tool that a graph or another runnable holds; return it.

    Not those that say `metadata={"tracefork": "live"}`, that lead to models or graphs (agents of
    their own: what they ask is on the tape one by one), or that are handed the agent's store (what
    they put there would be missing). `bind_tool` takes these too.

    Raises:
        UsageError: a tool names no effect.
    """
    for tool in list(search.tools(x)):
        if not is_left_live(tool):
            bind_tool(tool)
    return x


def bind_declared_tools(x: object) -> None:
    """Bind the tools that `x` holds and that say what they do to the world.

    A tool that says nothing may compute (then a replay does it again, and notices where its code
    has changed), ask by HTTP (which is on the tape anyhow) or keep what it learns in the process.
    """
    for tool in list(search.tools(x)):
        if is_declared(tool):
            bind_tool(tool)


def unbind_tools(x: X) -> X:
    """Let the tools that a graph or another runnable holds run again; return it."""
    for tool in list(search.tools(x)):
        unbind_tool(tool)
    return x


def _bind(tool: BaseTool, binding: Binding) -> None:
    vars(tool).update({_RUN: binding.wrapped(), _ARUN: binding.awrapped()})
