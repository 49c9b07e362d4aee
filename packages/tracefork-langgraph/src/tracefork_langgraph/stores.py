"""Give each replay and fork its own copy of an `InMemoryStore`, LangGraph's long-term memory.

So the next run does not see what a replay or a fork puts into the store. The copy is made when the
session first uses the store, because a tape does not record its content.
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
    own._data = copy.deepcopy(store._data)  # noqa: SLF001 - a test fails if they move
    own._vectors = copy.deepcopy(store._vectors)  # noqa: SLF001
    return own


def _of_memory(module: ModuleType) -> Callable[[], None]:
    return instrument(module.InMemoryStore, ("batch", "abatch"), _copied)


MEMORY = Instrument("langgraph.store.memory", _of_memory)
"""Every session switches it on when that module is imported."""
