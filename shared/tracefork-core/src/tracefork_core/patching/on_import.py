"""A call when a module has been loaded, for what must be settled before anybody uses it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.abc import Loader


# No base classes: `importlib.abc` loads half of the library, into child processes too.
class Arrival:
    """Calls `arrived` when the module `name` is loaded: once, and not when switched off by then."""

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
        finders = list(sys.meta_path)
        # Only those behind it: another one that waits for the same module would ask back.
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Announcing(spec.loader, self._announce)  # type: ignore[assignment]
                return spec
        return None

    def _announce(self) -> None:
        if self in sys.meta_path:  # A lazy module may load after `off`.
            self.off()
            self._arrived()


class _Announcing:
    """Loads as another loader does, and is gone when the module is there."""

    def __init__(self, loader: Loader, announce: Callable[[], None]) -> None:
        self._loader = loader
        self._announce = announce

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._announce()
