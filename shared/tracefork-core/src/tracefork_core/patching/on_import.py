"""Call a function as soon as a module is loaded, before any code uses the module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.machinery import ModuleSpec
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.abc import Loader


# No base classes: `importlib.abc` loads half of the library, into child processes too.
class OnImport:
    """Calls `arrived` once, when the module `name` is loaded, unless it is off by then.

    The module is executed in the context that `around` returns.
    """

    def __init__(
        self,
        name: str,
        arrived: Callable[[], None],
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._name = name
        self._arrived = arrived
        self._around = around

    def on(self) -> None:
        """Watch for the module from now on."""
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
        # Only the finders behind this one: another `OnImport` for the same module would ask back.
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Announcing(  # type: ignore[assignment]
                        spec.loader, self._announce, self._around
                    )
                return spec
        return None

    def _announce(self) -> None:
        if self in sys.meta_path:  # A lazy module may be loaded after `off`.
            self.off()
            self._arrived()


class _Announcing:
    """Loads a module with another loader, gives it that loader, and announces the module."""

    def __init__(
        self,
        loader: Loader,
        announce: Callable[[], None],
        around: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._loader = loader
        self._announce = announce
        self._around = around

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with self._around():
            self._loader.exec_module(module)
        self._announce()
