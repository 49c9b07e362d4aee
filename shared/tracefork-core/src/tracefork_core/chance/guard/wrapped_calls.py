"""Wrap the functions of `known_sources` while a guard is on, also where they are imported later.

Names that the user's modules bound before (`from uuid_utils import uuid4`) are bound anew, and
those in libraries of values. In other libraries nothing is: what they draw for themselves is not
looked at.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tracefork_core.chance.draws import observers, sighted
from tracefork_core.chance.guard.boundary import asking, guards
from tracefork_core.chance.guard.known_sources import DOORS, VALUES, Door
from tracefork_core.exchange.caller import is_users_module
from tracefork_core.patching.bound_names import names_of
from tracefork_core.patching.on_import import Arrival
from tracefork_core.patching.patch import Patches

_inside = threading.local()
"""Whether this thread is in a wrapped call already: `uuid4` calls `urandom`, and counts once."""

_patches = Patches()
_wrapped: dict[Door, tuple[Any, Any]] = {}
"""Each function that is wrapped, and its wrapper."""
_awaited: set[str] = set()
"""The modules that were not loaded when a guard began."""


def is_asked() -> bool:
    """Return whether this thread is in a call that was named already."""
    return bool(getattr(_inside, "depth", 0))


def wrap(doors: Iterable[Door]) -> None:
    """Wrap the functions whose modules are loaded, and see to the others as they are."""
    wanted = [door for door in doors if door not in _wrapped]
    _wrap_loaded(wanted)
    for module in {door.module for door in wanted} - sys.modules.keys() - _awaited:
        _awaited.add(module)
        arrival = Arrival(module, functools.partial(_wrap_arrived, module))
        _patches.switch(arrival.on, arrival.off)


def unwrap() -> None:
    """Put everything back. A library that bound a wrapper meanwhile has one that does nothing."""
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
    """Let names that were bound before mean what they mean in the modules they come from now."""
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
    """Return a function that names the line which calls it, and does what it did."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if is_asked() or (guard := guards.here()) is None or (frame := asking(1)) is None:
            return function(*args, **kwargs)
        if door.draws is not None and not door.draws((args, kwargs)):
            return function(*args, **kwargs)
        _inside.depth = 1
        try:
            if door.source not in guard.on_tape:
                guard.met(frame, f"{door.label}()", door.why, door.fix)
            value = function(*args, **kwargs)
        finally:
            _inside.depth = 0
        if observers:
            sighted(door.label, value, frame)
        return value

    return guarded
