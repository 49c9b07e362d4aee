"""Attach to graphs, chat models and other runnables: bind what they hold, and listen.

Callbacks in a graph's own config do not survive: LangGraph lets those of a call replace them. What
LangChain asks before *every* run, in every thread and task, is its configure hooks; so that is
where the handler stands, for as long as something is attached and only inside a session.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from langchain_core.runnables import Runnable
from langchain_core.tracers.context import register_configure_hook

from tracefork_core import UsageError
from tracefork_core.adapters import in_session
from tracefork_langgraph.chat_models import bind, unbind
from tracefork_langgraph.handler import TracingHandler
from tracefork_langgraph.search import chat_models

X = TypeVar("X")

_attached: WeakValueDictionary[int, object] = WeakValueDictionary()
_handler = TracingHandler()


def attach(x: X) -> X:
    """Record the steps of a compiled graph, a chat model or another runnable; return it.

    The chat models found in it are bound, so that it records and replays with `ambient=False` too.
    The same object comes back. Attaching twice is attaching once, `detach` undoes it, and outside a
    session nothing changes. While anything is attached, a session has the steps of all LangChain
    runs in it, also of agents that create their models as they go.

    Raises:
        UsageError: `x` is not a runnable.
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
    _listen()
    _attached[id(x)] = x
    return x


def detach(x: X) -> X:
    """Undo `attach`: its chat models have their own clients back; return it."""
    if _attached.pop(id(x), None) is not None:
        for model in chat_models(x):
            unbind(model)
    return x


class _Ear:
    """Stands where LangChain expects a context variable, and answers for every context."""

    def get(self) -> TracingHandler | None:
        """Return the handler that the run about to start gets."""
        try:
            return _handler if _attached and in_session() else None
        except UsageError:
            return None  # Two sessions and no context: an exchange here will say so.


_ear: _Ear | None = None


def _listen() -> None:
    """Register the hook, once: LangChain has no way to take one back."""
    global _ear
    if _ear is None:
        _ear = _Ear()
        hook = cast("ContextVar[Any]", _ear)
        register_configure_hook(hook, inheritable=True, handle_class=TracingHandler)
