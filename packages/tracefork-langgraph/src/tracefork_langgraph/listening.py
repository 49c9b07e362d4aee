"""Listen to the runs of LangChain, for as long as something here wants to know of them.

Callbacks in a graph's own config do not survive: LangGraph lets those of a call replace them. What
LangChain asks before *every* run, in every thread and task, is its configure hooks; so that is
where the handler stands, only inside a session.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, cast
from weakref import WeakValueDictionary

from langchain_core.tracers.context import register_configure_hook

from tracefork_core import UsageError
from tracefork_core.adapters import ask_where, in_session
from tracefork_langgraph.caches import MODELS, NODES
from tracefork_langgraph.given_ids import GIVEN
from tracefork_langgraph.handler import TracingHandler
from tracefork_langgraph.running import running_from
from tracefork_langgraph.stores import MEMORY

_listening: WeakValueDictionary[int, object] = WeakValueDictionary()
_handler = TracingHandler()


def listen_for(x: object) -> None:
    """Listen until `x` is gone, or `stop_for` is said."""
    _register()
    _listening[id(x)] = x


def is_listened_for(x: object) -> bool:
    """Return whether somebody listens for `x`."""
    return _listening.get(id(x)) is x


def listened_for() -> list[object]:
    """Return all that somebody listens for."""
    return list(_listening.values())


def stop_for(x: object) -> bool:
    """Listen no more for `x`; return whether anybody did."""
    return _listening.pop(id(x), None) is not None


class _Ear:
    """Stands where LangChain expects a context variable, and answers for every context."""

    def get(self) -> TracingHandler | None:
        """Return the handler that the run about to start gets."""
        try:
            return _handler if _listening and in_session() else None
        except UsageError:
            return None  # Two sessions and no context: an exchange here will say so.


_ear: _Ear | None = None


def _register() -> None:
    """Register the hook, once: LangChain has no way to take one back."""
    global _ear
    if _ear is None:
        _ear = _Ear()
        hook = cast("ContextVar[Any]", _ear)
        register_configure_hook(hook, inheritable=True, handle_class=TracingHandler)
        ask_where(running_from)
        for instrument in (MODELS, NODES, MEMORY, GIVEN):
            instrument.attach()
