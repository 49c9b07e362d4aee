"""Stand in for the storages of Strands, where it keeps snapshots of agents, memories and results.

Newer versions of Strands keep everything that outlives a run in a storage: bytes by their keys, in
a folder, in a bucket of S3 or in memory. Session managers of snapshots and the memory stores of
Strands run in replays as they always do, on the stand-in.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import Any

from strands.storage import InMemoryStorage, LocalFileStorage, S3Storage
from strands.storage.search.keyword import KeywordSearchStrategy
from strands.storage.storage import StorageSearchResult
from strands.types.exceptions import StorageError

from tracefork_core.adapters import Patches, State, Stored, put_in_front

_NAMES = ("write", "read", "delete", "list", "search")


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each storage of Strands, and of classes that derive from them."""
    for kind in (LocalFileStorage, S3Storage, InMemoryStorage):
        put_in_front(patches, kind, _NAMES, StoredBytes, same=_same)


def _same(held: Any) -> Hashable | None:
    """Return what storages share that hold the same data: `namespace` makes new ones."""
    if isinstance(held, LocalFileStorage):
        return type(held).__qualname__, str(Path(held.base_dir).absolute())
    place = held._store if isinstance(held, InMemoryStorage) else None  # noqa: SLF001
    place = held._bucket if place is None else id(place)  # noqa: SLF001 - nothing public tells
    return type(held).__qualname__, place, held._prefix  # noqa: SLF001


class StoredBytes:
    """A storage, as one session of tracefork sees it."""

    def __init__(self, held: Any, state: State) -> None:
        self._held = held
        self._stored = Stored(state, StorageError)
        self._has_strategy = held._search_strategy is not None  # noqa: SLF001 - or none tells
        self._known: dict[str, Any] = {}
        """What this run has read and written."""
        self._written: set[str] = set()

    async def write(self, own: Any, key: str, data: bytes) -> None:
        """Store data under a key."""
        await self._stored.awrite(f"write {key}", partial(own, key, data))
        self._put(key, bytes(data))

    async def delete(self, own: Any, key: str) -> None:
        """Delete what is stored under a key."""
        await self._stored.awrite(f"delete {key}", partial(own, key))
        self._put(key, None)

    async def read(self, own: Any, key: str) -> bytes | None:
        """Return what is stored under a key."""

        async def read() -> object:
            return _text(await own(key))

        def ours() -> object:
            return _text(self._known.get(key))

        is_written = key in self._written
        found = _bytes(await self._stored.aread(f"read {key}", read, ours, is_written=is_written))
        self._known.setdefault(key, found)
        return found

    async def list(self, own: Any, query: Any = "") -> Any:
        """Return the keys that begin with a prefix."""

        def ours() -> list[str]:
            return [key for key in self._known if key.startswith(str(query))]

        found = await self._stored.aread(f"list {query}", partial(own, query), ours)
        if not self._stored.is_answered:
            return found
        gone = {key for key in self._known if self._known[key] is None}
        written = {key for key in self._written if key.startswith(str(query))}
        return sorted({*found, *written} - gone)

    async def search(self, own: Any, query: Any) -> Any:
        """Return what matches a query, best first."""
        if not self._has_strategy:  # It reads all keys, and each read is answered.
            return await own(query)

        async def search() -> Any:
            return [[it.key, it.score, _text(it.data)] for it in await own(query)]

        noted = await self._stored.aread(
            f"search {query}", search, lambda: None, is_written=bool(self._written)
        )
        if noted is None:
            return await KeywordSearchStrategy().search(self._held, query)
        return [StorageSearchResult(key, score, _bytes(data)) for key, score, data in noted]

    def _put(self, key: str, data: bytes | None) -> None:
        self._known[key] = data
        self._written.add(key)


def _text(data: bytes | None) -> str | bytes | None:
    """Return data as text where it is one: secrets in it are masked."""
    try:
        return data if data is None else data.decode()
    except UnicodeDecodeError:
        return data


def _bytes(found: str | bytes | None) -> bytes | None:
    return found.encode() if isinstance(found, str) else found
