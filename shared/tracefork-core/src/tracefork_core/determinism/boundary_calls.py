"""Wrap the functions of `boundary_doors` while a guard is on, also where they are imported later.

Names that the user's modules bound before (`from uuid_utils import uuid4`) are bound anew, and
those in libraries of values. In other libraries nothing is: what they draw for themselves is not
looked at.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tracefork_core.determinism.boundary import asking, guard_here
from tracefork_core.determinism.boundary_doors import DOORS, VALUES, Door
from tracefork_core.determinism.sightings import observers, sighted
from tracefork_core.exchange.caller import is_users_module

_inside = threading.local()
"""Whether this thread is in a wrapped call already: `uuid4` calls `urandom`, and counts once."""

_wrapped: dict[Door, tuple[object, Any, Any]] = {}
"""What each wrapped function lies on, what lay there, and what lies there now."""


def is_asked() -> bool:
    """Return whether this thread is in a call that was named already."""
    return bool(getattr(_inside, "depth", 0))


def wrap(doors: Iterable[Door]) -> None:
    """Wrap the functions whose modules are loaded, and see to the others as they are."""
    wanted = [door for door in doors if door not in _wrapped]
    _wrap_loaded(wanted)
    later = {door.module for door in wanted} - sys.modules.keys()
    if later and _later not in sys.meta_path:
        sys.meta_path.insert(0, _later)
    _later.doors.update(door for door in wanted if door.module in later)


def unwrap() -> None:
    """Put everything back. A library that bound a wrapper meanwhile has one that does nothing."""
    _later.doors.clear()
    if _later in sys.meta_path:
        sys.meta_path.remove(_later)
    changed: dict[int, Any] = {}
    for door, (home, function, wrapper) in _wrapped.items():
        changed[id(wrapper)] = function
        name = door.name.rpartition(".")[2]
        if vars(home).get(name) is wrapper:  # What somebody else put there stays.
            setattr(home, name, function)
    _rebind(changed)
    _wrapped.clear()


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
        _wrapped[door] = home, function, wrapper
        setattr(home, name, wrapper)
        changed[id(function)] = wrapper
    _rebind(changed)


def _rebind(changed: dict[int, Any]) -> None:
    """Let names that were bound before mean what they mean in the modules they come from now."""
    for module in list(sys.modules.values()):
        if not is_users_module(module) and _top(module) not in VALUES:
            continue
        for name, value in list(vars(module).items()):
            if id(value) in changed:
                setattr(module, name, changed[id(value)])


def _top(module: ModuleType) -> str:
    return str(getattr(module, "__name__", "")).partition(".")[0]


def _guarded(door: Door, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that names the line which calls it, and does what it did."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if is_asked() or (guard := guard_here()) is None or (frame := asking(1)) is None:
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


class _Later(MetaPathFinder):
    """Wraps the functions of modules that are not loaded yet, once they are."""

    def __init__(self) -> None:
        self.doors: set[Door] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if all(door.module != fullname for door in self.doors):
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None

    def arrived(self, name: str) -> None:
        """Wrap what a module offers that was just loaded."""
        doors = {door for door in self.doors if door.module == name}
        self.doors -= doors
        _wrap_loaded(door for door in DOORS if door in doors)


class _Loader(Loader):
    """Loads as another loader does, and leaves no trace of itself."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        spec.loader = self._loader
        try:
            module: ModuleType | None = self._loader.create_module(spec)
        finally:
            spec.loader = self
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _later.arrived(module.__name__)


_later = _Later()
