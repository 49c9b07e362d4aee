"""Switch class-level instrumentation on and off, also for libraries imported later."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import ModuleType

from tracefork_core.patching.on_import import OnImport

Undo = Callable[[], None]


@dataclass(slots=True)
class Instrument:
    """How one library is instrumented. `apply` takes the module and returns what undoes it.

    Sessions share an instrument: the first one instruments, and the last one to end undoes it. A
    library that is not imported yet is instrumented when it is. `prepare` does what must be in
    place before that, and returns what undoes it. A session that instruments nothing by itself
    (`ambient=False`) uses an instrument while an adapter attaches it.
    """

    library: str
    apply: Callable[[ModuleType], Undo]
    prepare: Callable[[], Undo] | None = None
    _users: int = 0
    _undoing: ExitStack = field(default_factory=ExitStack)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _attached: int = 0
    _waiting: int = 0

    def on(self) -> None:
        """Instrument the library, now or when it is imported."""
        if self.library in sys.modules:
            importlib.import_module(self.library)  # Waits for a thread that is importing it.
        with self._lock:
            if not self._users:
                with ExitStack() as undoing:
                    self._begin(undoing)
                    self._undoing = undoing.pop_all()
            self._users += 1

    def _begin(self, undoing: ExitStack) -> None:
        if self.prepare is not None:
            undoing.callback(self.prepare())
        module = sys.modules.get(self.library)
        if module is not None:
            undoing.callback(self.apply(module))
        else:
            on_import = OnImport(self.library, self._imported)
            on_import.on()
            undoing.callback(on_import.off)

    def off(self) -> None:
        """Undo `on`; the last of several sessions leaves the library as it was."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._undoing.close()

    def attach(self) -> None:
        """Instrument the library in sessions that are not ambient, too."""
        self._attached += 1
        if self._attached == 1:
            for _ in range(self._waiting):
                self.on()

    def detach(self) -> None:
        """Undo `attach`; the last of several calls counts."""
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
            if self._users:
                self._undoing.callback(self.apply(sys.modules[self.library]))
