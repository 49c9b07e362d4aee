"""Put the caches of the user's own behind a session: LangGraph's for nodes, LangChain's for models.

A cache that an earlier run has filled would answer a replay or a fork instead of its tape or the
live provider. So a recording notes what each look into a cache gave, and whether the run had put it
there itself. A replay gets the same; a fork gets what the recording found and what it put itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from langchain_core import outputs
from langchain_core.messages import BaseMessage

from tracefork_core.adapters import Patches, State, fork_point, put_in_front, undisturbed
from tracefork_langgraph import ADAPTER
from tracefork_langgraph.connections import same_data
from tracefork_langgraph.serde import StrictSerializer
from tracefork_langgraph.session_serde import declared_types


class _Entries:
    """The entries of one cache that a session knows. None stands for no entry."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._serde = StrictSerializer()
        self._own: dict[Any, Any] = {}
        self._is_cleared: Callable[[Any], bool] = lambda _: False

    def put(self, key: Any, entry: Any) -> None:
        """Keep an entry that the run itself puts."""
        self._own[key] = entry

    def clear(self, is_cleared: Callable[[Any], bool]) -> None:
        """Forget the entries of the keys that are cleared."""
        before = self._is_cleared
        self._own = {key: own for key, own in self._own.items() if not is_cleared(key)}
        self._is_cleared = lambda key: before(key) or is_cleared(key)

    def look(self, key: Any, n: int) -> Any:
        """Return the entry that a replay or fork finds."""
        noted = self._state.recorded(_spelled(key), n)
        last = noted[-1] if noted else None
        is_exact = last is not None and last.n == n and fork_point() is None
        is_own = key in self._own
        if last is None or (is_own and not is_exact) or last.answer.get("own"):
            return self._own.get(key)
        if not last.values or (self._is_cleared(key) and not is_exact):
            return None
        self._serde.allowed |= declared_types
        return self._serde.loads_typed(last.values[0])

    def note(self, key: Any, n: int, entry: Any) -> None:
        """Put on the tape what a look gave."""
        if not self._state.is_noted:
            return
        if entry is not None and key in self._own:
            self._state.note(_spelled(key), n, {"own": True})
            return
        try:
            values = [] if entry is None else [self._serde.dumps_typed(entry)]
        except TypeError:
            values = []  # Only the process could hold it: the replay does the work again.
        self._state.note(_spelled(key), n, {}, values)


class NodeCache:
    """Stands in for one cache of nodes in one session; `live` is its own method."""

    def __init__(self, _: Any, state: State) -> None:
        self._state = state
        self._entries = _Entries(state)

    def get(self, live: Any, keys: Sequence[Any]) -> dict[Any, Any]:
        numbers = [self._state.number(_spelled(key)) for key in keys]
        if self._state.is_answered:
            return self._look(keys, numbers)
        with undisturbed():
            return self._noted(keys, numbers, live(keys))

    async def aget(self, live: Any, keys: Sequence[Any]) -> dict[Any, Any]:
        numbers = [self._state.number(_spelled(key)) for key in keys]
        if self._state.is_answered:
            return self._look(keys, numbers)
        with undisturbed():
            return self._noted(keys, numbers, await live(keys))

    def set(self, live: Any, pairs: Mapping[Any, Any]) -> None:
        self._put(pairs)
        if not self._state.is_answered:
            with undisturbed():
                live(pairs)

    async def aset(self, live: Any, pairs: Mapping[Any, Any]) -> None:
        self._put(pairs)
        if not self._state.is_answered:
            with undisturbed():
                await live(pairs)

    def clear(self, live: Any, namespaces: Sequence[Any] | None = None) -> None:
        self._entries.clear(_in(namespaces))
        if not self._state.is_answered:
            with undisturbed():
                live(namespaces)

    async def aclear(self, live: Any, namespaces: Sequence[Any] | None = None) -> None:
        self._entries.clear(_in(namespaces))
        if not self._state.is_answered:
            with undisturbed():
                await live(namespaces)

    def _put(self, pairs: Mapping[Any, Any]) -> None:
        for key, (value, _) in pairs.items():
            self._entries.put(key, [value])

    def _look(self, keys: Sequence[Any], numbers: Sequence[int]) -> dict[Any, Any]:
        entries = {key: self._entries.look(key, n) for key, n in zip(keys, numbers, strict=True)}
        found = {key: entry[0] for key, entry in entries.items() if entry is not None}
        return self._noted(keys, numbers, found)

    def _noted(
        self, keys: Sequence[Any], numbers: Sequence[int], found: dict[Any, Any]
    ) -> dict[Any, Any]:
        for key, n in zip(keys, numbers, strict=True):
            self._entries.note(key, n, [found[key]] if key in found else None)
        return found


class ModelCache:
    """Stands in for one cache of models in one session; `live` is its own method."""

    def __init__(self, _: Any, state: State) -> None:
        self._state = state
        self._entries = _Entries(state)

    def lookup(self, live: Any, prompt: str, llm_string: str) -> Any:
        key = (prompt, llm_string)
        n = self._state.number(_spelled(key))
        if self._state.is_answered:
            return self._look(key, n)
        with undisturbed():
            return self._noted(key, n, live(prompt, llm_string))

    async def alookup(self, live: Any, prompt: str, llm_string: str) -> Any:
        key = (prompt, llm_string)
        n = self._state.number(_spelled(key))
        if self._state.is_answered:
            return self._look(key, n)
        with undisturbed():
            return self._noted(key, n, await live(prompt, llm_string))

    def update(self, live: Any, prompt: str, llm_string: str, return_val: Any) -> None:
        self._entries.put((prompt, llm_string), _plain(return_val))
        if not self._state.is_answered:
            with undisturbed():
                live(prompt, llm_string, return_val)

    async def aupdate(self, live: Any, prompt: str, llm_string: str, return_val: Any) -> None:
        self._entries.put((prompt, llm_string), _plain(return_val))
        if not self._state.is_answered:
            with undisturbed():
                await live(prompt, llm_string, return_val)

    def clear(self, live: Any, **options: Any) -> None:
        self._entries.clear(lambda _: True)
        if not self._state.is_answered:
            with undisturbed():
                live(**options)

    async def aclear(self, live: Any, **options: Any) -> None:
        self._entries.clear(lambda _: True)
        if not self._state.is_answered:
            with undisturbed():
                await live(**options)

    def _look(self, key: Any, n: int) -> Any:
        entry = self._entries.look(key, n)
        return self._noted(key, n, None if entry is None else [_generation(*one) for one in entry])

    def _noted(self, key: Any, n: int, found: Any) -> Any:
        self._entries.note(key, n, None if found is None else _plain(found))
        return found


_GENERATIONS = {
    kind.__name__: kind
    for kind in (
        outputs.Generation,
        outputs.GenerationChunk,
        outputs.ChatGeneration,
        outputs.ChatGenerationChunk,
    )
}


def _plain(answers: Iterable[Any]) -> list[Any]:
    """Return cached answers without the classes that hold them: a tape names messages only."""
    return [
        [type(one).__name__, getattr(one, "message", one.text), one.generation_info]
        for one in answers
    ]


def _generation(kind: str, said: Any, info: Any) -> Any:
    content = {"message": said} if isinstance(said, BaseMessage) else {"text": said}
    return _GENERATIONS[kind](**content, generation_info=info)


def _in(namespaces: Sequence[Any] | None) -> Callable[[Any], bool]:
    """Return whether the key of a node is in one of these namespaces; None means all."""
    return lambda key: namespaces is None or key[0] in namespaces


def _spelled(key: Any) -> str:
    first, second = key
    return f"{first if isinstance(first, str) else ','.join(first)} {second}"


def _of_models(patches: Patches, module: ModuleType) -> None:
    names = ("lookup", "alookup", "update", "aupdate", "clear", "aclear")
    put_in_front(patches, module.BaseCache, names, ModelCache, same=same_data)


def _of_nodes(patches: Patches, module: ModuleType) -> None:
    names = ("get", "aget", "set", "aset", "clear", "aclear")
    put_in_front(patches, module.BaseCache, names, NodeCache, same=same_data)


MODELS = ADAPTER.instrument("langchain_core.caches", _of_models)
NODES = ADAPTER.instrument("langgraph.cache.base", _of_nodes)
"""Every session switches them on when these modules are imported."""
