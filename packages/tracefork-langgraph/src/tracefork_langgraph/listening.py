"""Listen to LangChain's runs: in an ambient session, and as long as anything is attached.

Callbacks in a graph's own config do not survive: LangGraph replaces them with those of a call. But
LangChain calls its configure hooks before *every* run, in every thread and task. So a hook adds the
handler, inside a session only.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any, cast
from weakref import WeakValueDictionary

from langchain_core.tracers.context import register_configure_hook

from tracefork_core import UsageError
from tracefork_core.adapters import ask_where, in_session
from tracefork_langgraph.caches import MODELS, NODES
from tracefork_langgraph.given_ids import GIVEN
from tracefork_langgraph.handler import TracingHandler
from tracefork_langgraph.instrument import is_on
from tracefork_langgraph.running import running_from
from tracefork_langgraph.stores import MEMORY

_listening: WeakValueDictionary[int, object] = WeakValueDictionary()
_handler = TracingHandler()


def listen_for(x: object) -> None:
    """Listen until `x` is garbage-collected or `stop_for(x)` is called."""
    register()
    _attach_instruments()
    _listening[id(x)] = x


def is_listened_for(x: object) -> bool:
    """Return whether `listen_for(x)` is in effect."""
    return _listening.get(id(x)) is x


def listened_for() -> list[object]:
    """Return all objects for which `listen_for` is in effect."""
    return list(_listening.values())


def stop_for(x: object) -> bool:
    """Stop listening for `x`; return whether `listen_for(x)` was in effect."""
    return _listening.pop(id(x), None) is not None


class _Ear:
    """Passed to LangChain in the place of a context variable: its value is the same everywhere."""

    def get(self) -> TracingHandler | None:
        """Return the handler for the run that is about to start."""
        try:
            return _handler if (_listening or is_on()) and in_session() else None
        except UsageError:
            return None  # Two sessions and no context: an exchange here raises this too.


_ear: _Ear | None = None


def register() -> None:
    """Register the hook once: LangChain cannot remove a hook."""
    global _ear
    if _ear is None:
        _ear = _Ear()
        hook = cast("ContextVar[Any]", _ear)
        register_configure_hook(hook, inheritable=True, handle_class=TracingHandler)
        ask_where(running_from)


@functools.cache
def _attach_instruments() -> None:
    for instrument in (MODELS, NODES, MEMORY, GIVEN):
        instrument.attach()
