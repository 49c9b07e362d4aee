"""Stand in for the storages of memories: no replay opens one, and a fork has a private one.

The calls of a memory are exchanges (see `memory`), so a replay needs no storage. What a fork
remembers after its fork point goes into a LanceDB of its own. That begins with the records of
earlier runs that the recording came across, whose vectors the memory's embedder makes again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import PurePath
from threading import Lock
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from crewai.memory.storage import factory
from crewai.memory.types import MemoryRecord, embed_texts
from crewai.memory.unified_memory import Memory

from tracefork_core.adapters import Patches, State, session_here, state_of
from tracefork_crewai import ADAPTER
from tracefork_crewai.hermetic import fresh_folder
from tracefork_crewai.reads import is_answered, packed

_STORAGE = "_storage"
_DEFAULT = str(Memory.model_fields["storage"].default)
_OPENED = (
    ("crewai.memory.storage.lancedb_storage", "LanceDBStorage"),
    ("crewai.memory.storage.qdrant_edge_storage", "QdrantEdgeStorage"),
)
_RECORDS, _ALL = "records", 2**62

# The paths of storages that were made in a replay or fork, and lie elsewhere.
_paths: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

# The storage that a call uses, and its stand-in: a save in the background may outlive the session.
_used: ContextVar[tuple[object, Any]] = ContextVar("tracefork_crewai_used", default=(None, None))


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of the storage of each memory."""
    patches.wrap(factory, "resolve_memory_storage", _unopened)
    for module, name in _OPENED:
        opening = ADAPTER.instrument(module, partial(_elsewhere, name))
        patches.switch(opening.on, opening.off)
    patches.wrap(Memory, "_submit_save", _saves.submitting)
    patches.switch(_saves.begin, _saves.end)


class _Saves:
    """Keeps the stand-ins in front of storages until the last save in the background has ended.

    A save may begin after the session in which it was asked for, and would find the real storage.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._pending: set[Future[Any]] = set()
        self._in_session = False

    def submitting(self, submit: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
        """Wrap what gives a save to the background."""

        @wraps(submit)
        def submitted(memory: Any, *args: Any, **kwargs: Any) -> Future[Any]:
            future = submit(memory, *args, **kwargs)
            with self._lock:
                self._pending.add(future)
            future.add_done_callback(self._ended)
            return future

        return submitted

    def begin(self) -> None:
        """Put the stand-ins in."""
        with self._lock:
            self._in_session = True
            Memory._storage = property(_storage_of, _set_storage)  # noqa: SLF001

    def end(self) -> None:
        """Take them out once no save needs them."""
        with self._lock:
            self._in_session = False
            self._leave()

    def _ended(self, future: Future[Any]) -> None:
        with self._lock:
            self._pending.discard(future)
            self._leave()

    def _leave(self) -> None:
        if not self._in_session and not self._pending and _STORAGE in vars(Memory):
            delattr(Memory, _STORAGE)


_saves = _Saves()


@contextmanager
def in_use(memory: Any) -> Iterator[None]:
    """Let the block, and the threads that it starts, use this session's storage of a memory."""
    token = _used.set((_own(memory), _storage_of(memory)))
    try:
        yield
    finally:
        _used.reset(token)


class MemoryStorage:
    """The storage of a memory, as one session sees it. Other methods are those of the storage."""

    def __init__(self, memory: Any, own: object, state: State) -> None:
        self._memory = memory
        self._own = own
        self._state = state
        self._private: Any = None
        self._known: set[str] = set()

    def close(self) -> None:
        """Close what is open."""
        used = self._private if self._state.is_answered else self._own
        if hasattr(used, "close"):
            used.close()

    def save(self, records: list[MemoryRecord]) -> Any:
        """Save records, which are then this run's own."""
        self._known.update(record.id for record in records)
        return self._storage().save(records)

    def update(self, record: MemoryRecord) -> Any:
        """Replace a record."""
        self._known.add(record.id)
        return self._storage().update(record)

    def search(self, *args: Any, **options: Any) -> Any:
        """Return records with their scores."""
        found = self._storage().search(*args, **options)
        self._note(record for record, _ in found)
        return found

    def list_records(self, *args: Any, **options: Any) -> Any:
        """Return records."""
        found = self._storage().list_records(*args, **options)
        self._note(found)
        return found

    def get_record(self, record_id: str) -> Any:
        """Return a record, or None."""
        found = self._storage().get_record(record_id)
        self._note([found] if found is not None else [])
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage(), name)

    def _storage(self) -> Any:
        if not self._state.is_answered:
            return self._own
        if self._private is None:
            self._private = _lancedb()
            self._begin_with(self._recorded())
        return self._private

    def _begin_with(self, records: list[MemoryRecord]) -> None:
        self._note(records)  # A fork is a recording, too.
        vectors = embed_texts(self._memory._embedder, [it.content for it in records])  # noqa: SLF001
        for record, vector in zip(records, vectors, strict=True):
            record.embedding = vector
        self._private.save(records)

    def _recorded(self) -> list[MemoryRecord]:
        return [
            MemoryRecord.model_validate(record)
            for noted in self._state.recorded(_RECORDS, _ALL)
            for _, data in noted.values
            for record in msgspec.msgpack.decode(data)
        ]

    def _note(self, found: Iterable[MemoryRecord]) -> None:
        """Put records of earlier runs on the tape, without their vectors."""
        new = {record.id: record for record in found if record.id not in self._known}
        if new and session_here() is not None:  # The background may go on after the session.
            self._known.update(new)
            fields = [record.model_dump(mode="json") for record in new.values()]
            number = self._state.number(_RECORDS)
            self._state.note(_RECORDS, number, None, [("msgpack", packed(fields))])


class Unopened:
    """A storage that a memory names, not opened in a replay or fork, only when used afterwards."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self._opened: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._opened is None:
            self._opened = _own(Memory(storage=self.spec))
        return getattr(self._opened, name)


def _own(memory: Any) -> Any:
    return memory.__pydantic_private__[_STORAGE]


def _storage_of(memory: Any) -> Any:
    own, (used, stand_in) = _own(memory), _used.get()
    if own is used:
        return stand_in
    made = state_of(own, "memory", partial(MemoryStorage, memory, own), _same(own))
    return own if made is None else made


def _set_storage(memory: Any, storage: object) -> None:
    memory.__pydantic_private__[_STORAGE] = storage


def _same(storage: Any) -> Hashable | None:
    """Return what the storages have in common that hold the same data: a path, if there is one."""
    if isinstance(storage, Unopened):
        return "memory", storage.spec
    if isinstance(path := getattr(storage, "_path", None), PurePath):
        return "memory", _paths.get(storage, str(path))
    return None


def _unopened(resolve: Callable[[str], Any]) -> Callable[[str], Any]:
    @wraps(resolve)
    def resolved(spec: str) -> Any:
        return Unopened(spec) if is_answered() else resolve(spec)

    return resolved


def _elsewhere(name: str, patches: Patches, module: ModuleType) -> None:
    """Let the constructor of a storage open an empty folder in a replay or fork."""

    def redirected(init: Callable[..., None]) -> Callable[..., None]:
        @wraps(init)
        def opened(self: Any, path: Any = None, *args: Any, **options: Any) -> None:
            if is_answered():
                _paths[self] = _DEFAULT if path is None else str(path)
                path = fresh_folder()
            init(self, path, *args, **options)

        return opened

    patches.wrap(getattr(module, name), "__init__", redirected)


def _lancedb() -> Any:
    from crewai.memory.storage.lancedb_storage import LanceDBStorage

    return LanceDBStorage(fresh_folder())
