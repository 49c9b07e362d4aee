"""Attach to graphs, chat models and other runnables: bind their models and tools, and listen."""

from __future__ import annotations

from typing import Any, TypeVar
from weakref import WeakSet

from langchain_core.runnables import Runnable

from tracefork_core import UsageError
from tracefork_langgraph.chat_models import bind, unbind
from tracefork_langgraph.listening import listen_for, listened_for, register, stop_for
from tracefork_langgraph.saver import allow_schemas
from tracefork_langgraph.search import chat_models, tools
from tracefork_langgraph.tools import bind_declared_tools, unbind_tool

X = TypeVar("X")

_prepared: WeakSet[Runnable[Any, Any]] = WeakSet()


def attach(x: X) -> X:
    """Record the steps of a compiled graph, a chat model or another runnable; return it.

    This binds the chat models found in it, so that it records and replays with `ambient=False` too.
    It also binds the tools that declare their side effect: a replay does not run them. It returns
    the same object. A second `attach` changes nothing, `detach` undoes it, and outside a session
    nothing changes. While anything is attached, a session has the steps of all LangChain runs in
    it, including those of agents that create their models during the run.

    Raises:
        UsageError: `x` is not a runnable, or one of its tools declares an unknown effect.
    """
    if not isinstance(x, Runnable):
        first = (
            " Compile the graph first: attach(builder.compile())." if hasattr(x, "compile") else ""
        )
        raise UsageError(
            f"tracefork: cannot attach to {type(x).__module__}.{type(x).__qualname__}: it is not a "
            f"compiled graph, a chat model or another runnable.{first}"
        )
    for model in chat_models(x):
        try:
            bind(model)
        except UsageError:
            continue  # Its exchanges cross the ambient seam or are not recorded.
    bind_declared_tools(x)
    allow_schemas(x)
    listen_for(x)
    return x


def prepare(graph: Runnable[Any, Any]) -> None:
    """Do for a graph that runs in an ambient session what `attach` does, once.

    Its models are not bound: an ambient session records them anyway.

    Raises:
        UsageError: one of its tools declares an unknown effect.
    """
    register()
    if graph not in _prepared:
        _prepared.add(graph)
        bind_declared_tools(graph)
        allow_schemas(graph)


def detach(x: X) -> X:
    """Undo `attach`: give its chat models their own clients back and unbind its tools; return it.

    Models and tools that another attached object also holds stay bound.
    """
    if stop_for(x):
        others = listened_for()
        still_held = {id(held) for other in others for held in (*chat_models(other), *tools(other))}
        for model in chat_models(x):
            if id(model) not in still_held:
                unbind(model)
        for tool in list(tools(x)):
            if id(tool) not in still_held:
                unbind_tool(tool)
    return x
