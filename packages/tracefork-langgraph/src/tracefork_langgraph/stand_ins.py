"""Put a stand-in in front of each checkpointer, store and cache that a session uses.

What they hold outlives the run: a database has the threads of earlier runs, a cache their answers.
While recording, the stand-in asks the object and notes on the tape what the run read. In a replay
or fork it answers from the tape and from what the run itself wrote, and the object stays as it is.

The replacement happens in the methods of the objects' classes, so it works for every caller and for
classes of yours. What an object does inside its own methods is left alone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any
from weakref import WeakKeyDictionary

from tracefork_core.adapters import State, crossing_seam, state_of

Replace = Callable[[type, str, Any], Any]
"""Takes a class, the name of one of its attributes and that; returns what takes its place."""

_working: ContextVar[bool] = ContextVar("tracefork_langgraph_working", default=False)
_opened: WeakKeyDictionary[Any, Hashable] = WeakKeyDictionary()
"""The databases that savers and stores were opened from."""


@contextmanager
def undisturbed(*, below_seam: bool = True) -> Iterator[None]:
    """Let an object work: no stand-in steps in, and nothing that it draws or asks is recorded.

    Without `below_seam`, draws and requests are recorded.
    """
    token = _working.set(True)
    try:
        with crossing_seam() if below_seam else nullcontext():
            yield
    finally:
        _working.reset(token)


def instrument(
    base: Any,
    names: Sequence[str],
    make: Callable[[Any, State], Any],
    is_exempt: Callable[[Any], bool] = lambda _: False,
    replace: Mapping[str, Replace] | None = None,
) -> Callable[[], None]:
    """Put stand-ins in front of the objects of a class and of its subclasses; return the undo.

    A stand-in has the methods `names`; each gets the object's own bound method, and its arguments.

    Args:
        base: the class.
        names: the methods that are replaced.
        make: makes the stand-in of an object.
        is_exempt: whether an object works as it is here.
        replace: how to replace other attributes, by their names.
    """
    others = replace or {}

    def instead(kind: type, name: str, original: Any) -> Any:
        if name in others:
            return others[name](kind, name, original)

        @wraps(original)
        def method(self: object, *args: Any, **kwargs: Any) -> Any:
            if _working.get() or is_exempt(self):
                return original(self, *args, **kwargs)
            stand_in = state_of(self, type(self).__name__, partial(make, self), _same(self))
            if stand_in is None:
                return original(self, *args, **kwargs)
            return getattr(stand_in, name)(partial(original, self), *args, **kwargs)

        return method

    return replace_in_classes(base, (*names, *others), instead)


def replace_in_classes(base: Any, names: Sequence[str], instead: Replace) -> Callable[[], None]:
    """Replace attributes of a class and of its present and future subclasses; return the undo."""
    replaced: list[tuple[type, str, Any]] = []

    def replace(kind: type) -> None:
        for name in names:
            if name in vars(kind):
                replaced.append((kind, name, vars(kind)[name]))
                setattr(kind, name, instead(kind, name, vars(kind)[name]))

    def arrive(kind: Any, /, **options: Any) -> None:
        super(base, kind).__init_subclass__(**options)
        replace(kind)

    waiting, seen = [base], set()
    while waiting:
        kind = waiting.pop()
        if kind not in seen:
            seen.add(kind)
            replace(kind)
            waiting.extend(kind.__subclasses__())
    base.__init_subclass__ = classmethod(arrive)

    def undo() -> None:
        del base.__init_subclass__
        for kind, name, original in replaced:
            setattr(kind, name, original)

    return undo


def upkeep(state: State, live: Any) -> Any:
    """Let an object create its tables or delete what has expired, but not in a replay or fork.

    Return what the caller of that method gets, to be awaited where the method is asynchronous.
    """
    if iscoroutinefunction(live.func):
        return _aupkeep(state, live)
    if state.is_answered:
        return None
    with undisturbed():
        return live()


async def _aupkeep(state: State, live: Any) -> Any:
    if state.is_answered:
        return None
    with undisturbed():
        return await live()


def note_opened(shared: object, database: str) -> None:
    """Note from which database an object was opened: others may be opened from the same one."""
    is_file = "://" not in database and "=" not in database and database != ":memory:"
    if database != ":memory:":
        _opened[shared] = os.path.realpath(database) if is_file else database


def _same(shared: Any) -> Hashable | None:
    """Return what objects have in common that hold the same data; None if that is unknown."""
    with suppress(TypeError):
        if shared in _opened:
            return _opened[shared]
    connection = getattr(shared, "conn", None)
    if isinstance(connection, sqlite3.Connection):
        with suppress(sqlite3.Error), undisturbed():
            for _, name, file in connection.execute("PRAGMA database_list"):
                if name == "main" and file:
                    note_opened(shared, file)
                    return _opened[shared]
    held = connection if connection is not None else getattr(shared, "storage", None)
    return ("held", id(held)) if held is not None else None
