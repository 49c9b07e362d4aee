"""Attach each graph that runs in an ambient session, so that an agent needs no line for it.

LangGraph is still being imported when the instrument is put in, and our own modules import more of
it. So they are loaded when the first graph runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tracefork_core import UsageError
from tracefork_core.adapters import Patches, in_session
from tracefork_langgraph import ADAPTER

_USES = (
    *("stream", "astream", "get_state", "aget_state", "get_state_history", "aget_state_history"),
    *("update_state", "aupdate_state"),
)
"""All ways to run a graph lead to the first two; the others read or write its states."""

_switch = {"is_on": False}


def is_on() -> bool:
    """Return whether an ambient session is open, or was when the graph began to run."""
    return _switch["is_on"]


def _put_in(patches: Patches, module: ModuleType) -> None:
    patches.switch(lambda: _switch.update(is_on=True), lambda: _switch.update(is_on=False))
    for name in _USES:
        patches.wrap(module.Pregel, name, _prepared)


def _prepared(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that prepares its graph before it does its work in a session."""

    @functools.wraps(original)
    def run(graph: Any, *args: Any, **options: Any) -> Any:
        if _is_in_session():
            from tracefork_langgraph.attachment import prepare

            prepare(graph)
        return original(graph, *args, **options)

    return run


def _is_in_session() -> bool:
    try:
        return in_session()
    except UsageError:
        return False  # Two sessions and no context: an exchange here raises this too.


GRAPHS = ADAPTER.instrument("langgraph.pregel", _put_in)
"""Every ambient session switches it on when that module is imported."""
