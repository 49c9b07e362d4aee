"""Caches of answers: LangChain's of models, LangGraph's of nodes. Under a tape each is its own.

What one run has put into a cache answers the next: a fork would be answered by the replay before
it, and blame would judge that. So in a session that is answered from a tape a cache begins empty,
and what it is given nobody sees afterwards. A recording has the caches as they are.

They are caught where all of them are asked: in what their base classes declare.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from tracefork_core import Tape, UsageError
from tracefork_core.adapters import Instrument, answering_tape

_OWN = "_tracefork_is_own"
_Empty = Callable[[Any], Any]
"""Makes the cache that a session has in the place of another one."""

# By the identity of a cache, which is held so that no other one gets it.
_owned: WeakKeyDictionary[Tape, dict[int, tuple[object, Any]]] = WeakKeyDictionary()
_lock = threading.Lock()


def _of_session(cache: object, empty: _Empty) -> Any:
    """Return what a session has in the place of a cache; None where it is used as it is."""
    if hasattr(cache, _OWN):
        return None
    try:
        tape = answering_tape()
    except UsageError:
        return None  # Two sessions and no context: an exchange here will say so.
    if tape is None:
        return None
    with _lock:
        owned = _owned.setdefault(tape, {})
        if id(cache) not in owned:
            owned[id(cache)] = cache, empty(cache)
            setattr(owned[id(cache)][1], _OWN, True)
        return owned[id(cache)][1]


def _instrument(base: Any, names: tuple[str, ...], empty: _Empty) -> Callable[[], None]:
    """Replace these methods in all classes of caches, and in those to come; return the undoing."""
    replaced: list[tuple[type, str, Any]] = []

    def replace(kind: type) -> None:
        for name in names:
            if name in vars(kind):
                replaced.append((kind, name, vars(kind)[name]))
                setattr(kind, name, _instead(vars(kind)[name], name, empty))

    def arrive(kind: Any, /, **options: Any) -> None:
        super(base, kind).__init_subclass__(**options)
        replace(kind)

    waiting = [base]
    while waiting:
        kind = waiting.pop()
        if not any(kind is done for done, _, _ in replaced):
            replace(kind)
        waiting.extend(kind.__subclasses__())
    base.__init_subclass__ = classmethod(arrive)

    def undo() -> None:
        del base.__init_subclass__
        for kind, name, original in replaced:
            setattr(kind, name, original)

    return undo


def _instead(original: Any, name: str, empty: _Empty) -> Any:
    @wraps(original)
    def method(self: object, *args: Any, **kwargs: Any) -> Any:
        if (own := _of_session(self, empty)) is not None:
            return getattr(own, name)(*args, **kwargs)
        return original(self, *args, **kwargs)

    return method


def _of_models(module: ModuleType) -> Callable[[], None]:
    names = ("lookup", "alookup", "update", "aupdate", "clear", "aclear")
    return _instrument(module.BaseCache, names, lambda _: module.InMemoryCache())


def _of_nodes(module: ModuleType) -> Callable[[], None]:
    def empty(cache: Any) -> Any:
        from langgraph.cache.memory import InMemoryCache

        return InMemoryCache(serde=cache.serde)

    names = ("get", "aget", "set", "aset", "clear", "aclear")
    return _instrument(module.BaseCache, names, empty)


MODELS = Instrument("langchain_core.caches", _of_models)
NODES = Instrument("langgraph.cache.base", _of_nodes)
"""Switched on by every session, once these modules are imported."""
