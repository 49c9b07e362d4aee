"""Do something before the first draw of a process: traps in the functions that draw.

This is not `patching.patch`, and a file of its own, because every child process runs it as it
starts. Only the modules `time` and `os` are patched then: names that other modules bound are few,
and to look for them in every module takes 10 ms. Taking the traps out does look for them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from tracefork_core.patching.bound_names import Pair, Swaps

_FUNCTIONS: dict[ModuleType, str] = {
    time: "time time_ns localtime gmtime strftime clock_gettime clock_gettime_ns",
    os: "urandom getrandom",
}


class Traps:
    """Calls `first` before each draw, until `take_out`."""

    def __init__(self, first: Callable[[], None]) -> None:
        self._first = first
        self._pairs: list[Pair] = []

    def put_in(self) -> None:
        """Replace each function that draws by a trap."""
        for module, names in _FUNCTIONS.items():
            for name in names.split():
                if (real := getattr(module, name, None)) is not None:
                    trap = self._trap(module, name, real)
                    self._pairs.append((real, trap))
                    setattr(module, name, trap)

    def take_out(self) -> None:
        """Undo `put_in`, also in modules that imported a trap since."""
        Swaps(self._pairs).take_out()

    def _trap(self, module: ModuleType, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def trap(*args: Any, **kwargs: Any) -> Any:
            self._first()
            now = getattr(module, name)
            return (real if now is trap else now)(*args, **kwargs)

        return trap
