"""Attach to graphs, chat models and other runnables: bind what they hold, and listen."""

from __future__ import annotations

from typing import TypeVar

from langchain_core.runnables import Runnable

from tracefork_core import UsageError
from tracefork_langgraph.chat_models import bind, unbind
from tracefork_langgraph.listening import listen_for, listened_for, stop_for
from tracefork_langgraph.saver import allow_schemas
from tracefork_langgraph.search import chat_models, tools
from tracefork_langgraph.tools import bind_declared_tools, unbind_tool

X = TypeVar("X")


def attach(x: X) -> X:
    """Record the steps of a compiled graph, a chat model or another runnable; return it.

    The chat models found in it are bound, so that it records and replays with `ambient=False` too,
    and so are the tools that say what they do to the world: a replay does not run these.
    The same object comes back. Attaching twice is attaching once, `detach` undoes it, and outside a
    session nothing changes. While anything is attached, a session has the steps of all LangChain
    runs in it, also of agents that create their models as they go.

    Raises:
        UsageError: `x` is not a runnable, or one of its tools names an effect that is none.
    """
    if not isinstance(x, Runnable):
        first = (
            " Compile the graph first: attach(builder.compile())." if hasattr(x, "compile") else ""
        )
        raise UsageError(
            f"tracefork: cannot attach to {type(x).__module__}.{type(x).__qualname__}: it is no "
            f"compiled graph, chat model or other runnable.{first}"
        )
    for model in chat_models(x):
        try:
            bind(model)
        except UsageError:
            continue  # Its exchanges cross the ambient seam, or none.
    bind_declared_tools(x)
    allow_schemas(x)
    listen_for(x)
    return x


def detach(x: X) -> X:
    """Undo `attach`: its chat models have their own clients back, its tools run; return it.

    Not those that something else holds which is attached still.
    """
    if stop_for(x):
        others = listened_for()
        kept = {id(it) for other in others for it in (*chat_models(other), *tools(other))}
        for model in chat_models(x):
            if id(model) not in kept:
                unbind(model)
        for tool in list(tools(x)):
            if id(tool) not in kept:
                unbind_tool(tool)
    return x
