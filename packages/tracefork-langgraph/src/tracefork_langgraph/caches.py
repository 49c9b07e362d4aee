"""Start each replay and fork with empty caches: LangChain's for models, LangGraph's for nodes.

A cache that an earlier run has filled would answer a fork instead of the live provider.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from tracefork_core.adapters import Instrument
from tracefork_langgraph.session_own import instrument


def _of_models(module: ModuleType) -> Callable[[], None]:
    names = ("lookup", "alookup", "update", "aupdate", "clear", "aclear")
    return instrument(module.BaseCache, names, lambda _: module.InMemoryCache())


def _of_nodes(module: ModuleType) -> Callable[[], None]:
    def empty(cache: Any) -> Any:
        from langgraph.cache.memory import InMemoryCache

        return InMemoryCache(serde=cache.serde)

    names = ("get", "aget", "set", "aset", "clear", "aclear")
    return instrument(module.BaseCache, names, empty)


MODELS = Instrument("langchain_core.caches", _of_models)
NODES = Instrument("langgraph.cache.base", _of_nodes)
"""Every session switches them on when these modules are imported."""
