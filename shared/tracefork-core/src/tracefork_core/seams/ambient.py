"""Switch class-level instrumentation on and off, also for libraries imported later."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.abc import Loader

Undo = Callable[[], None]


@dataclass(slots=True)
class Instrument:
    """How one library is instrumented. `apply` takes the module and returns its undoing.

    Counted: two sessions at once instrument once, and the last one to end undoes it. A library
    that is not imported yet is instrumented when it is.
    """

    library: str
    apply: Callable[[ModuleType], Undo]
    _users: int = 0
    _undo: Undo | None = None
    _finder: _OnImport | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def on(self) -> None:
        """Instrument the library, now or when it is imported."""
        if self.library in sys.modules:
            importlib.import_module(self.library)  # Waits for a thread that is importing it.
        with self._lock:
            module = sys.modules.get(self.library)
            if self._users:
                pass
            elif module is not None:
                self._undo = self.apply(module)
            else:
                self._finder = _OnImport(self)
                sys.meta_path.insert(0, self._finder)
            self._users += 1

    def off(self) -> None:
        """Leave the library as it was, once nobody uses it any more."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if self._finder is not None:
                sys.meta_path.remove(self._finder)
                self._finder = None
            if self._undo is not None:
                self._undo()
                self._undo = None

    def imported(self, module: ModuleType) -> None:
        """Instrument a library that was just imported."""
        with self._lock:
            if self._users and self._undo is None:
                self._undo = self.apply(module)


class _OnImport:
    """Let the usual finders find the library, and instrument it once it has run."""

    def __init__(self, instrument: Instrument) -> None:
        self._instrument = instrument
        self._searching = threading.local()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname != self._instrument.library or getattr(self._searching, "now", False):
            return None
        self._searching.now = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching.now = False
        if spec is not None and spec.loader is not None:
            spec.loader = _InstrumentingLoader(spec.loader, self._instrument)  # type: ignore[assignment]
        return spec


# No base classes: `importlib.abc` loads half of the library, into child processes too.
class _InstrumentingLoader:
    def __init__(self, loader: Loader, instrument: Instrument) -> None:
        self._loader = loader
        self._instrument = instrument

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._instrument.imported(module)
