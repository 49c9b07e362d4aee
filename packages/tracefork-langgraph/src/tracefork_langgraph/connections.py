"""Open no database of the user's in a replay or fork.

A checkpointer or store that is opened from a connection string opens one in memory instead (SQLite)
or none (Postgres): its stand-in does not use it. So a database that is gone is not created again,
and no server has to run.
"""

from __future__ import annotations

import inspect
import os
import sqlite3
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import wraps
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from tracefork_core import UsageError
from tracefork_core.adapters import Patches, answering_tape, replace_in_classes, undisturbed
from tracefork_langgraph import ADAPTER

OPEN = "from_conn_string"
"""The method of the classes that open a database."""
_MEMORY = ":memory:"
_opened: WeakKeyDictionary[Any, Hashable] = WeakKeyDictionary()
"""The databases that savers and stores were opened from."""
_OPTIONS = ("serde", "index", "ttl")
"""What a connection string's other options say to the object itself."""


class Unconnected:
    """Takes the place of a connection to a database that a replay or fork does not open."""

    def __init__(self, why: str) -> None:
        self._why = why

    def __getattr__(self, name: str) -> Any:
        raise UsageError(f"tracefork: cannot use `{name}` of a database connection: {self._why}")


def opening(kind: type, _: str, original: Any) -> Any:
    """Return what takes the place of `from_conn_string`."""
    function = original.__func__
    is_async = inspect.isasyncgenfunction(inspect.unwrap(function))

    def opened(cls: Any, database: str, options: dict[str, Any]) -> Any:
        if answering_tape() is None:
            return function(cls, database, **options)
        if "sqlite" in cls.__module__ or "sqlite" in kind.__module__:
            return function(cls, _MEMORY, **options)
        if ".postgres" not in kind.__module__:
            return function(cls, database, **options)
        own = {name: options[name] for name in _OPTIONS if name in options}
        return nullcontext(cls(Unconnected(_WHY), **own))

    @asynccontextmanager
    async def aopen(cls: Any, conn_string: str, **options: Any) -> AsyncIterator[Any]:
        async with opened(cls, conn_string, options) as shared:
            _note_opened(shared, conn_string)
            yield shared

    @contextmanager
    def open_(cls: Any, conn_string: str, **options: Any) -> Iterator[Any]:
        with opened(cls, conn_string, options) as shared:
            _note_opened(shared, conn_string)
            yield shared

    instead: Any = aopen if is_async else open_
    return classmethod(wraps(function)(instead))


_WHY = (
    "a replay or fork opens none for a checkpointer or store. It answers from the tape. Open a "
    "connection of your own for other queries."
)


def _cached_in_memory(_: type, __: str, original: Any) -> Any:
    """Return what takes the place of the constructor of a cache in a SQLite file."""

    @wraps(original)
    def init(self: Any, *args: Any, **options: Any) -> None:
        if answering_tape() is not None and "path" in options:
            options["path"] = _MEMORY
        original(self, *args, **options)

    return init


def _note_opened(shared: object, database: str) -> None:
    """Note from which database an object was opened: others may be opened from the same one."""
    is_file = "://" not in database and "=" not in database and database != _MEMORY
    if database != _MEMORY:
        _opened[shared] = os.path.realpath(database) if is_file else database


def same_data(shared: Any) -> Hashable | None:
    """Return what objects have in common that hold the same data; None if that is unknown."""
    with suppress(TypeError):
        if shared in _opened:
            return _opened[shared]
    connection = getattr(shared, "conn", None)
    if isinstance(connection, sqlite3.Connection):
        with suppress(sqlite3.Error), undisturbed():
            for _, name, file in connection.execute("PRAGMA database_list"):
                if name == "main" and file:
                    _note_opened(shared, file)
                    return _opened[shared]
    held = connection if connection is not None else getattr(shared, "storage", None)
    return ("held", id(held)) if held is not None else None


def _of_sqlite_cache(patches: Patches, module: ModuleType) -> None:
    replace_in_classes(patches, module.SqliteCache, ("__init__",), _cached_in_memory)


CACHES = ADAPTER.instrument("langgraph.cache.sqlite", _of_sqlite_cache)
"""Every session switches it on when that module is imported."""
