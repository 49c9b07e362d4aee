"""Chance in a child process is switched on when something is first drawn: most children never draw.

What reads the clock or draws entropy goes through a function of `time` or `os`, or a module that is
imported for it. Both are watched until the first of them is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType

from tracefork_core.chance.first_draw import Traps
from tracefork_core.patching.instrument import Instrument, Undo

_MODULES = "datetime random secrets tempfile uuid".split()
_OTHERS_NEEDED = {"backports", "dateutil", "msgspec", "time_machine", "tracefork_core"}


class Waking:
    """Calls `start` once, before the first draw."""

    def __init__(self, start: Callable[[], None]) -> None:
        self._start = start
        self._over = False
        self._traps = Traps(self.wake)
        self._instruments = [Instrument(name, self._imported) for name in _MODULES]

    def begin(self) -> None:
        """Wait for the first draw."""
        self._traps.put_in()
        for instrument in self._instruments:
            instrument.on()

    def wake(self) -> None:
        """Start now, unless that needs what is being imported at this moment: then after that."""
        if self._over:
            return
        if (loading := _half_loaded()) is not None:
            when_loaded(loading, self.wake)
            return
        self._over = True
        self._traps.take_out()
        self._start()

    def _imported(self, _: ModuleType) -> Undo:
        self.wake()
        return lambda: None


def _half_loaded() -> ModuleSpec | None:
    """Return the outermost import under way that ours could depend on."""
    for name, module in list(sys.modules.items()):
        root = name.partition(".")[0]
        if root not in sys.stdlib_module_names and root not in _OTHERS_NEEDED:
            continue
        spec = getattr(module, "__spec__", None)
        if spec is not None and getattr(spec, "_initializing", False):
            return spec  # type: ignore[no-any-return]
    return None


def when_loaded(spec: ModuleSpec, then: Callable[[], None]) -> None:
    """Call `then` as soon as a module that is being imported is there."""

    class Announced(ModuleSpec):
        @property
        def _initializing(self) -> bool:
            return bool(vars(self)["_initializing"])

        @_initializing.setter
        def _initializing(self, value: bool) -> None:
            vars(self)["_initializing"] = value
            if not value:
                self.__class__ = ModuleSpec  # type: ignore[assignment]
                then()

    if type(spec) is ModuleSpec:
        spec.__class__ = Announced
