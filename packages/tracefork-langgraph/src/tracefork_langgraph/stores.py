"""LangGraph's long-term memory, where it is in the process: under a tape it is a copy.

What a replay or a fork puts into an `InMemoryStore` is not there for the next. A copy is as the
store is when the session first asks it: a tape has nothing of it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tracefork_core.adapters import Instrument
from tracefork_langgraph.session_own import instrument


def _copied(store: Any) -> Any:
    own = copy.copy(store)
    own._data = copy.deepcopy(store._data)  # noqa: SLF001 - a test says so if they move
    own._vectors = copy.deepcopy(store._vectors)  # noqa: SLF001
    return own


def _of_memory(module: ModuleType) -> Callable[[], None]:
    return instrument(module.InMemoryStore, ("batch", "abatch"), _copied)


MEMORY = Instrument("langgraph.store.memory", _of_memory)
"""Switched on by every session, once that module is imported."""
