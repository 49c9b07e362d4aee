"""Names that modules bound for themselves: `from os import urandom`, `from random import random`.

They are found by identity in every loaded module. What else holds such a function (a default, an
attribute of a class, a closure) is not found, and keeps the real one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import ModuleType

_OURS = "tracefork_core."
"""Where the real functions are kept."""

Pair = tuple[object, object]


class Swaps:
    """Functions and what stands in for them while it is switched on."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._pairs = list(pairs)
        self._sought = {id(function) for pair in self._pairs for function in pair}
        self._looked_at: dict[str, int] = {}
        self._latest: tuple[int, str] | None = None
        self._growing: list[str] = []
        self._holding: dict[str, list[str]] = {}

    def put_in(self) -> None:
        """Rebind every name of a function to its stand-in."""
        self._rebind({id(real): stand_in for real, stand_in in self._pairs})

    def take_out(self) -> None:
        """Undo `put_in`, also in modules that bound a stand-in since."""
        self._rebind({id(stand_in): real for real, stand_in in self._pairs})

    def _rebind(self, instead: Mapping[int, object]) -> None:
        self._look_around()
        for key, held in self._holding.items():
            names = names_of(sys.modules.get(key)) or {}
            for name in held:
                if (other := instead.get(id(names.get(name)))) is not None:
                    names[name] = other

    def _look_around(self) -> None:
        """Find out which names are bound to one of the functions or stand-ins.

        To look at a hundred thousand names takes 10 ms, and half of that to see that no module
        grew. Where none was loaded since, only the program itself and those that were not quite
        loaded are looked at.
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
        if not key.startswith(_OURS) and (held := self._found(names)):
            self._holding[key] = held

    def _found(self, names: dict[str, object]) -> list[str]:
        if self._sought.isdisjoint(map(id, list(names.values()))):
            return []
        return [name for name, held in list(names.items()) if id(held) in self._sought]


def _is_loading(key: str) -> bool:
    names = names_of(sys.modules.get(key)) or {}
    return bool(getattr(names.get("__spec__"), "_initializing", False))


def names_of(module: object) -> dict[str, object] | None:
    """Return the names of a module without asking it: a lazy one would load itself."""
    if not issubclass(type(module), ModuleType):
        return None
    names: dict[str, object] = object.__getattribute__(module, "__dict__")
    return names
