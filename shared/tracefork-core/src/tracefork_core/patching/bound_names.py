"""Replace functions under every name that a module gave them: `from os import urandom`.

To patch `os.urandom` alone would miss the modules that imported the function by name. The names are
found by identity in every loaded module. Defaults, class attributes and closures that hold the
function are not found, and keep the real one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import ModuleType

_OURS = "tracefork_core."
"""Our own modules keep the real functions."""

Pair = tuple[object, object]


class Swaps:
    """Pairs of a function and its stand-in, switched on and off together."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._pairs = list(pairs)
        self._sought = {id(function) for pair in self._pairs for function in pair}
        self._own_names = {getattr(real, "__name__", "") for real, _ in self._pairs}
        self._looked_at: dict[str, int] = {}
        self._latest: tuple[int, str] | None = None
        self._growing: list[str] = []
        self._holding: dict[str, list[str]] = {}

    def put_in(self) -> None:
        """Bind every name of a function to its stand-in."""
        self._rebind({id(real): stand_in for real, stand_in in self._pairs})

    def take_out(self) -> None:
        """Undo `put_in`, also in modules that imported a stand-in since."""
        self._rebind({id(stand_in): real for real, stand_in in self._pairs})

    def _rebind(self, replacements: Mapping[int, object]) -> None:
        self._look_around()
        for key, held in self._holding.items():
            names = names_of(sys.modules.get(key)) or {}
            for name in held:
                if (other := replacements.get(id(names.get(name)))) is not None:
                    names[name] = other

    def _look_around(self) -> None:
        """Find the names that are bound to one of the functions or stand-ins.

        To look at a hundred thousand names takes 10 ms, and half of that to see that no module
        grew. If no module was loaded since the last time, only `__main__` and the modules that
        were still loading then are looked at.
        """
        latest = len(sys.modules), next(reversed(sys.modules))
        keys = self._growing if latest == self._latest else list(sys.modules)
        self._latest = latest
        self._growing = [key for key in keys if key == "__main__" or _is_loading(key)]
        for key in keys:
            self._look_at(key)

    def _look_at(self, key: str) -> None:
        module = sys.modules.get(key)
        names = module.__dict__ if type(module) is ModuleType else names_of(module)
        if names is None or self._looked_at.get(key) == (state := id(names) + len(names)):
            return
        self._looked_at[key] = state
        self._holding.pop(key, None)
        if not key.startswith(_OURS) and (held := self._names_held(names)):
            self._holding[key] = held

    def _names_held(self, names: dict[str, object]) -> list[str]:
        # A name that a mock holds now may hold the function when the next session begins.
        held = {name for name in self._own_names if name in names}
        if not self._sought.isdisjoint(map(id, list(names.values()))):
            held.update(name for name, value in list(names.items()) if id(value) in self._sought)
        return list(held)


def _is_loading(key: str) -> bool:
    names = names_of(sys.modules.get(key)) or {}
    return bool(getattr(names.get("__spec__"), "_initializing", False))


def names_of(module: object) -> dict[str, object] | None:
    """Return a module's namespace without an attribute access, which loads a lazy module."""
    if not issubclass(type(module), ModuleType):
        return None
    names: dict[str, object] = object.__getattribute__(module, "__dict__")
    return names
