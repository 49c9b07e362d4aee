"""A call when a module has been loaded, for what must be settled before anybody uses it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Arrival(MetaPathFinder):
    """Calls `arrived` once the module `name` is loaded, until it is switched off."""

    def __init__(self, name: str, arrived: Callable[[], None]) -> None:
        self._name = name
        self._arrived = arrived

    def on(self) -> None:
        """Begin to look out for it."""
        sys.meta_path.insert(0, self)

    def off(self) -> None:
        """Undo `on`. May be called twice."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec: ModuleSpec | None = find(fullname, path, target)
                if spec is not None:
                    spec.loader = _Announcing(spec.loader, self._arrived) if spec.loader else None
                    return spec
        return None


class _Announcing(Loader):
    """Loads as another loader does, and is gone when the module is there."""

    def __init__(self, loader: Any, arrived: Callable[[], None]) -> None:
        self._loader = loader
        self._arrived = arrived

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._arrived()
