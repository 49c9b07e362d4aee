"""The wall clock of this process, taken over at C level.

time-machine patches `datetime` and `time` in C, so names bound before us are covered and types stay
what they are; `monotonic`, `perf_counter`, event loops and timeouts are not touched. What follows
is private to it and ours to watch: `traveller_stack`, whose top it asks for the time, its
`Traveller._stop`, and `_time_machine.original_time_ns`, by which a journey goes on.
tests/chance/test_time_machine.py fails by name if one of them moves.

A journey that the program begins inside of a session goes on by the session's clock; one that it is
on already is what that clock reads. freezegun, which replaces names, lies above all that.
"""

from __future__ import annotations

import datetime as dt
import sys
import threading
import time
from importlib import import_module
from typing import Any, Protocol

from tracefork_core.patching.patch import Patches


class Traveller(Protocol):
    """What time-machine asks for the time."""

    def time_ns(self) -> int: ...

    def _start(self) -> None: ...

    def _stop(self) -> None: ...


def real_ns() -> int:
    """Return the time as it is without us: real, or that of a journey the program is on."""
    return _real_ns()


_patches = Patches()
_original_ns = _real_ns = time.time_ns
_asking = threading.local()
"""Whether this thread asks the journey around the sessions for its time."""
_FROZEN = "FakeDatetime"


def take(traveller: Traveller) -> None:
    """Let `traveller` answer every read of the wall clock."""
    global _original_ns, _real_ns
    _load()
    import time_machine

    native: Any = import_module("_time_machine")
    stack = time_machine.traveller_stack
    around = stack[-1] if stack else None
    # Patches if nobody has yet, and pushes a traveller of its own, whose place ours takes.
    _begun(time_machine.travel(0))._stop()  # noqa: SLF001
    stack[-1] = traveller  # type: ignore[call-overload]
    _original_ns = native.original_time_ns
    _real_ns = _original_ns if around is None else lambda: _asked(around)
    _patches.replace(native, "original_time_ns", lambda: _passing(traveller))


def give_back(traveller: Traveller) -> None:
    """Undo `take`, also below a journey that was begun since and goes on."""
    global _original_ns, _real_ns
    import time_machine

    _patches.undo()
    stack = time_machine.traveller_stack
    if traveller in stack:
        stack.remove(traveller)
        stack.append(traveller)
    time_machine.travel(0).stop()
    _original_ns = _real_ns = time.time_ns


def _asked(around: Traveller) -> int:
    """Return the time of the journey that the program was on before."""
    _asking.around = True
    try:
        return around.time_ns()
    finally:
        _asking.around = False


def _passing(traveller: Traveller) -> int:
    """Return what a journey goes on by."""
    return _original_ns() if getattr(_asking, "around", False) else traveller.time_ns()


def _begun(journey: Any) -> Any:
    """Begin a journey where freezegun is active too, beside which time-machine begins none."""
    now = dt.datetime
    if now.__name__ != _FROZEN:
        return journey.start()
    now.__name__ = "datetime"
    try:
        return journey.start()
    finally:
        now.__name__ = _FROZEN


def _load() -> None:
    """Import time-machine without the pytest it loads for its plugin, wherever there is one.

    That costs half a second, and a library that looks for pytest would think it is being tested.
    """
    hidden = "pytest" not in sys.modules
    if hidden:
        sys.modules["pytest"] = None  # type: ignore[assignment]
    try:
        import_module("time_machine")
    finally:
        if hidden:
            del sys.modules["pytest"]
