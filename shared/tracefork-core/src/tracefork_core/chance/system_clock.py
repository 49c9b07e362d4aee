"""Replace the wall clock of this process, in C, by way of time-machine.

time-machine patches `datetime` and `time` in C. So names that were imported before are covered, and
types stay the same; `monotonic`, `perf_counter`, event loops and timeouts are not touched.

Three private names of time-machine are used: `traveller_stack`, whose top element it asks for the
time; `Traveller._stop`; and `_time_machine.original_time_ns`, from which travelled time ticks.
tests/chance/test_time_machine.py fails by name if one of them changes.

If the program itself travels with time-machine inside a session, its time ticks by the session's
clock. If it travels already, the session's clock reads the travelled time. A mock and freezegun
replace names, and so lie above all of this: what they answer is the program's own. `real_clock`
keeps them out of time-machine's hands.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import Any, Protocol

from tracefork_core.patching import real_clock
from tracefork_core.patching.patch import Patches


class Traveller(Protocol):
    """The interface that time-machine asks for the time."""

    def time_ns(self) -> int: ...

    def _start(self) -> None: ...

    def _stop(self) -> None: ...


def real_ns() -> int:
    """Return the time without tracefork: the real one, or that of the program's own travel."""
    return _real_ns()


_patches = Patches()
_original_ns = _real_ns = real_clock.time_ns
_asking = threading.local()
"""Whether this thread is asking the program's own traveller, from before the sessions."""


def take(traveller: Traveller) -> None:
    """Let `traveller` answer every read of the wall clock."""
    global _original_ns, _real_ns
    with real_clock.in_place():
        _load()
        import time_machine

        native: Any = import_module("_time_machine")
        stack = time_machine.traveller_stack
        around = stack[-1] if stack else None
        # This patches, if time-machine has not yet, and pushes a traveller, which ours replaces.
        time_machine.travel(0).start()._stop()  # noqa: SLF001
    stack[-1] = traveller  # type: ignore[call-overload]
    _original_ns = native.original_time_ns
    _real_ns = _original_ns if around is None else lambda: _asked(around)
    _patches.replace(native, "original_time_ns", lambda: _passing(traveller))


def give_back(traveller: Traveller) -> None:
    """Undo `take`, also if the program has begun to travel since and has not ended."""
    global _original_ns, _real_ns
    import time_machine

    _patches.undo()
    stack = time_machine.traveller_stack
    if traveller in stack:
        stack.remove(traveller)
        stack.append(traveller)
    with real_clock.in_place():
        time_machine.travel(0).stop()
    _original_ns = _real_ns = real_clock.time_ns


def _asked(around: Traveller) -> int:
    """Return the time of the program's own traveller, from before the sessions."""
    _asking.around = True
    try:
        return around.time_ns()
    finally:
        _asking.around = False


def _passing(traveller: Traveller) -> int:
    """Return the time from which travelled time ticks."""
    return _original_ns() if getattr(_asking, "around", False) else traveller.time_ns()


def _load() -> None:
    """Import time-machine without pytest, which it loads for its plugin if it is installed.

    pytest costs half a second, and a library that looks for it would believe it is under test.
    """
    hidden = "pytest" not in sys.modules
    if hidden:
        sys.modules["pytest"] = None  # type: ignore[assignment]
    try:
        import_module("time_machine")
    finally:
        if hidden:
            del sys.modules["pytest"]
