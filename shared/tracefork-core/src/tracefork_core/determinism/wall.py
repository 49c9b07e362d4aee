"""The wall clock of this process, taken over at C level.

time-machine patches `datetime` and `time` in C, so names bound before us are covered and types stay
what they are; `monotonic`, `perf_counter`, event loops and timeouts are not touched. What follows
is private to it and ours to watch: `traveller_stack`, whose top it asks for the time, its
`Traveller._stop`, and `_time_machine.original_time_ns`.
tests/determinism/test_time_machine.py fails by name if one of them moves.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Protocol


class Traveller(Protocol):
    """What time-machine asks for the time."""

    def time_ns(self) -> int: ...

    def _start(self) -> None: ...

    def _stop(self) -> None: ...


def real_ns() -> int:
    """Return the time as it is without us: real, or that of a journey the program is on."""
    return _real_ns()


_real_ns = time.time_ns


def take(traveller: Traveller) -> None:
    """Let `traveller` answer every read of the wall clock."""
    global _real_ns
    _load()
    import time_machine

    original_time_ns = import_module("_time_machine").original_time_ns
    stack = time_machine.traveller_stack
    around = stack[-1] if stack else None
    # Patches if nobody has yet, and pushes a traveller of its own, whose place ours takes.
    time_machine.travel(0).start()._stop()  # noqa: SLF001
    stack[-1] = traveller  # type: ignore[call-overload]
    _real_ns = around.time_ns if around is not None else original_time_ns


def give_back(traveller: Traveller) -> None:
    """Undo `take`, also below a journey that was begun since and goes on."""
    global _real_ns
    import time_machine

    stack = time_machine.traveller_stack
    if traveller in stack:
        stack.remove(traveller)
        stack.append(traveller)
    time_machine.travel(0).stop()
    _real_ns = time.time_ns


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
