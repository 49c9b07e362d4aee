"""Switch class-level instrumentation on and off, also for libraries imported later."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType

from tracefork_core.patching.on_import import Arrival

Undo = Callable[[], None]


@dataclass(slots=True)
class Instrument:
    """How one library is instrumented. `apply` takes the module and returns its undoing.

    Counted: two sessions at once instrument once, and the last one to end undoes it. A library
    that is not imported yet is instrumented when it is; `prepare` does, and undoes, what has to be
    there before that. A session that instruments nothing by itself (`ambient=False`) waits for what
    an adapter attaches, before it begins or in it.
    """

    library: str
    apply: Callable[[ModuleType], Undo]
    prepare: Callable[[], Undo] | None = None
    _users: int = 0
    _undo: Undo | None = None
    _prepared: Undo | None = None
    _arrival: Arrival | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _attached: int = 0
    _waiting: int = 0

    def on(self) -> None:
        """Instrument the library, now or when it is imported."""
        if self.library in sys.modules:
            importlib.import_module(self.library)  # Waits for a thread that is importing it.
        with self._lock:
            if not self._users:
                self._prepared = self.prepare() if self.prepare is not None else None
                try:
                    self._begin(sys.modules.get(self.library))
                except BaseException:
                    self._undo_preparation()
                    raise
            self._users += 1

    def _begin(self, module: ModuleType | None) -> None:
        if module is not None:
            self._undo = self.apply(module)
        else:
            self._arrival = Arrival(self.library, self._imported)
            self._arrival.on()

    def _undo_preparation(self) -> None:
        if self._prepared is not None:
            self._prepared()
            self._prepared = None

    def off(self) -> None:
        """Leave the library as it was, once nobody uses it any more."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if self._arrival is not None:
                self._arrival.off()
                self._arrival = None
            if self._undo is not None:
                self._undo()
                self._undo = None
            self._undo_preparation()

    def attach(self) -> None:
        """Instrument the library in sessions that are not ambient, too."""
        self._attached += 1
        if self._attached == 1:
            for _ in range(self._waiting):
                self.on()

    def detach(self) -> None:
        """Undo `attach`; the last one counts."""
        self._attached -= 1
        if not self._attached:
            for _ in range(self._waiting):
                self.off()

    def wait_on(self) -> None:
        """Begin a session that is not ambient."""
        self._waiting += 1
        if self._attached:
            self.on()

    def wait_off(self) -> None:
        """End a session that is not ambient."""
        self._waiting -= 1
        if self._attached:
            self.off()

    def _imported(self) -> None:
        with self._lock:
            if self._users and self._undo is None:
                self._undo = self.apply(sys.modules[self.library])
