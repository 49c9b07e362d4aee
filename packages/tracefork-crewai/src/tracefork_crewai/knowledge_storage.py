"""Stand in for the storages of knowledge: no replay opens one, and a fork has a private one.

The queries are exchanges (see `knowledge`), so a replay needs no storage. What a fork stores goes
into a private storage, which begins with the passages of earlier runs that the recording found.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Hashable
from functools import partial, wraps
from typing import Any

import msgspec
from crewai.knowledge.storage import knowledge_storage as of_crewai
from crewai.knowledge.storage.base_knowledge_storage import BaseKnowledgeStorage
from crewai.knowledge.storage.knowledge_storage import KnowledgeStorage
from crewai.rag.config import utils as rag

from tracefork_core.adapters import (
    Patches,
    State,
    put_in_front,
    session_here,
    state_of,
    undisturbed,
)
from tracefork_crewai.hermetic import fresh_folder
from tracefork_crewai.inside import is_inside
from tracefork_crewai.reads import Reads, is_answered, packed

_NAMES = ("search", "asearch", "save", "asave", "reset", "areset")
_KIND = "knowledge"
_PASSAGES, _ALL = "passages", 2**62
_WORD = re.compile(r"\w+")


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each storage of knowledge."""
    for module in (of_crewai, rag):
        patches.wrap(module, "create_client", _elsewhere)
    put_in_front(patches, BaseKnowledgeStorage, _NAMES, StoredKnowledge, kind=_KIND, same=_same)


def notice(storage: object) -> None:
    """Let the tape count the storages in the order of the calls, also of those that it answers."""
    if storage is not None:
        state_of(storage, _KIND, partial(StoredKnowledge, storage), _same(storage))


def _same(storage: Any) -> Hashable | None:
    if type(storage) is not KnowledgeStorage:
        return None
    return "knowledge", storage.collection_name


def _elsewhere(create: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let a replay or fork open an empty database, whatever the configuration names."""

    @wraps(create)
    def created(config: Any) -> Any:
        if is_answered():
            folder, config = str(fresh_folder()), copy.copy(config)
            if config.provider == "chromadb":
                fields = {**dict(config.settings), "persist_directory": folder}
                # The class of the configuration refuses the settings of early versions.
                object.__setattr__(config, "settings", type(config.settings)(**fields))
            elif config.provider == "qdrant":
                object.__setattr__(config, "options", {"path": folder})
        return create(config)

    return created


class StoredKnowledge:
    """A storage of knowledge, as one session sees it."""

    def __init__(self, own: Any, state: State) -> None:
        self._own = own
        self._state = state
        self._reads = Reads(state)
        self._known: set[str] = set()
        self._private: Any = None
        self._kept: list[str] = self._recorded() if state.is_answered else []
        self._note(self._kept)  # A fork is a recording, too.

    def search(self, own: Any, *args: Any, **options: Any) -> Any:
        """Return the passages that are nearest to a query."""

        def found() -> Any:
            return self._noted(own(*args, **options))

        if is_inside():  # The query is an exchange, and live here.
            return self._searched(*args, **options) if self._state.is_answered else found()
        passages = self._reads.read(_key(args, options), found)
        return self._searched(*args, **options) if passages is None else passages

    async def asearch(self, own: Any, *args: Any, **options: Any) -> Any:
        """Do the same in async code."""

        async def found() -> Any:
            return self._noted(await own(*args, **options))

        if is_inside():
            return self._searched(*args, **options) if self._state.is_answered else await found()
        passages = await self._reads.aread(_key(args, options), found)
        return self._searched(*args, **options) if passages is None else passages

    def save(self, own: Any, documents: list[str]) -> None:
        """Store documents, which are then this run's own."""
        self._known.update(documents)
        if self._state.is_answered:
            self._kept.extend(documents)
        else:
            with undisturbed():
                own(documents)

    async def asave(self, own: Any, documents: list[str]) -> None:
        """Do the same in async code."""
        self._known.update(documents)
        if self._state.is_answered:
            self._kept.extend(documents)
        else:
            with undisturbed():
                await own(documents)

    def reset(self, own: Any) -> None:
        """Delete all documents."""
        if self._state.is_answered:
            self._forget()
        else:
            with undisturbed():
                own()

    async def areset(self, own: Any) -> None:
        """Do the same in async code."""
        if self._state.is_answered:
            self._forget()
        else:
            with undisturbed():
                await own()

    def _forget(self) -> None:
        self._private, self._kept = None, []

    def _searched(self, *args: Any, **options: Any) -> Any:
        """Search in the private storage, which is made here, since storing calls an embedder."""
        with undisturbed():
            if self._private is None:
                is_default = type(self._own) is KnowledgeStorage
                self._private = _chroma(self._own) if is_default else _Words()
            new, self._kept = self._kept, []
            if new:
                self._private.save(new)
            return self._private.search(*args, **options)

    def _recorded(self) -> list[str]:
        return [
            passage
            for noted in self._state.recorded(_PASSAGES, _ALL)
            for _, data in noted.values
            for passage in msgspec.msgpack.decode(data)
        ]

    def _noted(self, passages: Any) -> Any:
        self._note([str(passage["content"]) for passage in passages])
        return passages

    def _note(self, contents: list[str]) -> None:
        """Put passages of earlier runs on the tape."""
        new = [it for it in dict.fromkeys(contents) if it not in self._known]
        if new and session_here() is not None:
            self._known.update(new)
            number = self._state.number(_PASSAGES)
            self._state.note(_PASSAGES, number, None, [("msgpack", packed(new))])


class _Words:
    """Stands for a storage of a class of the user's: those that share most words are nearest."""

    def __init__(self) -> None:
        self._texts: dict[str, frozenset[str]] = {}

    def save(self, documents: list[str]) -> None:
        self._texts.update((text, _words(text)) for text in documents)

    def reset(self) -> None:
        self._texts.clear()

    def search(self, query: Any, limit: int = 5, *_: Any, **__: Any) -> list[dict[str, Any]]:
        asked = _words(query if isinstance(query, str) else " ".join(query))
        scores = {
            text: len(asked & words) / len(asked or "-") for text, words in self._texts.items()
        }
        best = sorted(self._texts, key=lambda text: -scores[text])[:limit]
        return [
            {"id": str(n), "content": text, "metadata": {}, "score": scores[text]}
            for n, text in enumerate(best)
        ]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _chroma(own: Any) -> Any:
    """Return an empty storage that embeds like another one."""
    private = KnowledgeStorage(embedder=own.embedder, collection_name=own.collection_name)
    if not own.embedder:
        private._client = of_crewai.create_client(rag.get_rag_config())  # noqa: SLF001
    return private


def _key(args: tuple[Any, ...], options: dict[str, Any]) -> str:
    return json.dumps([args, options], default=str, sort_keys=True)
