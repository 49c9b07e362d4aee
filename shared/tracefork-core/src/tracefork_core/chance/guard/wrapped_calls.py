"""Wrap the functions of `known_sources` while a guard is on, also those that are imported later.

Names that the user's modules imported before (`from uuid_utils import uuid4`) are replaced, too,
and so are names in libraries of values. Names in other libraries stay: what these draw for
themselves does not count. That is why this is not `patching.bound_names`.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tracefork_core.chance.draws import observers, report_draw
from tracefork_core.chance.guard.boundary import asking_frame, guards
from tracefork_core.chance.guard.known_sources import DOORS, VALUES, Door
from tracefork_core.exchange.caller import is_users_module
from tracefork_core.patching.bound_names import names_of
from tracefork_core.patching.on_import import OnImport
from tracefork_core.patching.patch import Patches

_inside = threading.local()
"""How deep this thread is in wrapped calls: `uuid4` calls `urandom`, and counts once."""

_patches = Patches()
_wrapped: dict[Door, tuple[Any, Any]] = {}
"""Each wrapped function, and its wrapper."""
_awaited: set[str] = set()
"""The modules that were not loaded when a guard began."""


def is_inside() -> bool:
    """Return whether this thread is inside a wrapped call, which was reported already."""
    return bool(getattr(_inside, "depth", 0))


def wrap(doors: Iterable[Door]) -> None:
    """Wrap the functions whose modules are loaded; the others when their modules are."""
    wanted = [door for door in doors if door not in _wrapped]
    _wrap_loaded(wanted)
    for module in {door.module for door in wanted} - sys.modules.keys() - _awaited:
        _awaited.add(module)
        on_import = OnImport(module, functools.partial(_wrap_arrived, module))
        _patches.switch(on_import.on, on_import.off)


def unwrap() -> None:
    """Undo `wrap`. A library that imported a wrapper meanwhile has one that does nothing."""
    _patches.undo()
    _rebind({id(wrapper): function for function, wrapper in _wrapped.values()})
    _wrapped.clear()
    _awaited.clear()


def _wrap_arrived(module: str) -> None:
    _wrap_loaded(door for door in DOORS if door.module == module)


def _wrap_loaded(doors: Iterable[Door]) -> None:
    changed: dict[int, Any] = {}
    for door in doors:
        home: Any = sys.modules.get(door.module)
        *classes, name = door.name.split(".")
        for part in classes:
            home = getattr(home, part, None)
        function = vars(home).get(name) if home is not None else None
        if function is None:
            continue
        wrapper = _guarded(door, function)
        _wrapped[door] = function, wrapper
        _patches.replace(home, name, wrapper)
        changed[id(function)] = wrapper
    _rebind(changed)


def _rebind(changed: dict[int, Any]) -> None:
    """Replace functions under the names that user code and libraries of values gave them."""
    for module in list(sys.modules.values()):
        names = names_of(module)
        if names is None or not (is_users_module(names) or _top(names) in VALUES):
            continue
        for name, value in list(names.items()):
            if id(value) in changed:
                names[name] = changed[id(value)]


def _top(names: Mapping[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


def _guarded(door: Door, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that reports the line which calls it, and calls `function`."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if is_inside() or (guard := guards.here()) is None or (frame := asking_frame(1)) is None:
            return function(*args, **kwargs)
        if door.draws is not None and not door.draws((args, kwargs)):
            return function(*args, **kwargs)
        _inside.depth = 1
        try:
            if door.source not in guard.on_tape:
                guard.report(frame, f"{door.label}()", door.why, door.fix)
            value = function(*args, **kwargs)
        finally:
            _inside.depth = 0
        if observers:
            report_draw(door.label, value, frame)
        return value

    return guarded
