"""Find the Python functions behind a value: under decorators, in tables, in a framework's tools."""

from __future__ import annotations

import gc
import inspect
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from functools import partial, partialmethod
from types import FunctionType, MethodType, ModuleType
from typing import Any

from tracefork_core.patching.code_swap import is_redirection

_ABSENT = object()
_KEYS = ("function", "func", "callable", "handler", "fn")
_ATTRIBUTES = ("func", "coroutine", "function", "fn", "_func")
"""Where the tools of frameworks keep the function that they were made of."""
_METHODS = ("_run", "_arun")
"""What runs a tool that is an object of a class of the user's, besides `__call__`."""
_MOST = 500
"""How many objects are looked at."""


def value_at(module: ModuleType, path: str) -> object:
    """Return what a dotted name of a module leads to, or `_ABSENT`; runs none of its code."""
    first, *rest = path.split(".")
    value = vars(module).get(first, _ABSENT)
    for name in rest:
        if value is _ABSENT:
            return value
        value = inspect.getattr_static(value, name, _ABSENT)
    return value


def is_absent(value: object) -> bool:
    """Return whether `value_at` found nothing."""
    return value is _ABSENT


def functions_in(value: object, names: Collection[str]) -> list[FunctionType]:
    """Return the innermost Python functions that a call of `value` runs.

    Args:
        value: a function, a method, a decorated one, or an object that holds one.
        names: names that the function may have; they tell it from those of decorators.
    """
    value = _plain(value)
    if isinstance(value, FunctionType):
        return [_innermost(value, names)]
    if inspect.isclass(value) or isinstance(value, ModuleType):
        return []
    if inspect.isfunction(inner := _unwrapped(value)):  # as of `lru_cache`
        return [_innermost(inner, names)]
    found = [
        function
        for attribute in _ATTRIBUTES
        if callable(held := inspect.getattr_static(value, attribute, None))
        for function in functions_in(held, names)
    ]
    if found:
        return list(dict.fromkeys(found))
    own = {getattr(value, key, None) for key in ("name", "__name__")}
    if (function := _held(value, {*names, *own})) is not None:
        return [function]
    methods = [inspect.getattr_static(type(value), method, None) for method in _METHODS]
    if not any(isinstance(method, FunctionType) for method in methods):
        methods = [inspect.getattr_static(type(value), "__call__", None)]
    return [method for method in methods if isinstance(method, FunctionType)]


def entries(table: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield the callables of a table, and of tables in it, each with a name."""
    items: Any
    if isinstance(table, Mapping):
        for key in _KEYS:
            if callable(table.get(key)):
                yield str(table.get("name", path)), table[key]
                return
        items = [(str(key), value) for key, value in table.items()]
    elif isinstance(table, list | tuple | set | frozenset):
        items = [(str(getattr(value, "__name__", path)), value) for value in table]
    else:
        return
    for name, value in items:
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            yield from entries(value, name)
        elif callable(value) or any(hasattr(value, attribute) for attribute in _ATTRIBUTES):
            yield name, value


def _plain(value: object) -> object:
    """Return the function below descriptors, partials and methods."""
    while True:
        if isinstance(value, staticmethod | classmethod | MethodType):
            value = value.__func__
        elif isinstance(value, partial | partialmethod):
            value = value.func
        else:
            return value


def _unwrapped(value: Any) -> object:
    try:
        return _plain(inspect.unwrap(value, stop=_is_redirected))
    except ValueError:  # a circle
        return value


def _is_redirected(value: object) -> bool:
    """Return whether a function was made a tool: what it wraps then is a copy of itself."""
    return isinstance(value, FunctionType) and is_redirection(value.__code__)


def _innermost(function: FunctionType, names: Collection[str]) -> FunctionType:
    inner = _unwrapped(function)
    inner = inner if isinstance(inner, FunctionType) else function
    if inner.__name__ in names:
        return inner
    return _held(inner, names) or inner  # A decorator without `functools.wraps`.


def _held(value: object, names: Collection[object]) -> FunctionType | None:
    """Return the nearest function with one of these names that a value refers to."""
    seen, waiting = {id(value)}, deque(_referents(value))
    while waiting and len(seen) < _MOST:
        held = waiting.popleft()
        if id(held) in seen or isinstance(held, type | ModuleType | str | bytes | int):
            continue
        seen.add(id(held))
        if isinstance(held, FunctionType) and held.__name__ in names:
            inner = _unwrapped(held)
            return inner if isinstance(inner, FunctionType) else held
        waiting.extend(_referents(held))
    return None


def _referents(value: object) -> list[object]:
    held: list[object] = gc.get_referents(value)
    if isinstance(value, FunctionType):  # Its globals refer to all else of its module.
        return [other for other in held if other is not value.__globals__]
    return held
