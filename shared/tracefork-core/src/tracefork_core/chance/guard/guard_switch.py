"""Switch a guard on: wrapped functions, a clock that is only looked at, and audit events.

The events are those by which a run leaves what a session can follow: programs that do not join it.
An audit hook stays for the life of the process: with no guard it returns at once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType

from tracefork_core.chance import clock, system_clock
from tracefork_core.chance.guard import wrapped_calls
from tracefork_core.chance.guard.boundary import OUTSIDE, BoundaryGuard, asking, guards
from tracefork_core.chance.guard.known_sources import CLOCK, DOORS, STARTERS

ProgramName = Callable[[str, tuple[object, ...]], str | None]
"""Names the program that an audit event announces; None where that will be watched itself."""

_PROGRAMS = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.spawn", "pty.spawn"})
_EVENTS = _PROGRAMS | {"os.exec", "os.fork"}

_TOOL = "Hand the agent what it says, or make it an exchange."

_lock = threading.Lock()
_clocks: dict[BoundaryGuard, clock.RecordedClock] = {}
_installed = False


class _SeenClock(clock.RecordedClock):
    """The real clock of a session that keeps it off its tape."""

    def __init__(self, guard: BoundaryGuard) -> None:
        super().__init__(guard.session)
        self.is_plain = False  # Whoever reads it is looked at each time.
        self._guard = guard

    def read(self, site: str) -> int:
        if not wrapped_calls.is_asked() and (frame := asking(1)) is not None:
            self._guard.met(
                frame,
                "a read of the clock",
                f"{OUTSIDE}: the clock of this run was switched off",
                "Leave the clock on, or read run.nondet.now().",
            )
        return system_clock.real_ns()


def start(guard: BoundaryGuard, program_name: ProgramName) -> None:
    """Begin to name what goes past the tape of a session."""
    global _installed, _program_name
    with _lock:
        _program_name = program_name
        guards.all.append(guard)
        wrapped_calls.wrap(door for door in DOORS if door.source not in guard.on_tape)
        if CLOCK not in guard.on_tape:
            _clocks[guard] = _SeenClock(guard)
            clock.start(_clocks[guard])
        if not _installed:
            _installed = True
            sys.addaudithook(_hook)


def stop(guard: BoundaryGuard) -> None:
    """Undo `start`."""
    with _lock:
        guards.all.remove(guard)
        if (seen := _clocks.pop(guard, None)) is not None:
            clock.stop(seen)
        if not guards.all:
            wrapped_calls.unwrap()


def _unnamed(event: str, args: tuple[object, ...]) -> str | None:
    return None


_program_name: ProgramName = _unnamed


def _told_to_spawn(frame: FrameType) -> tuple[object, ...]:
    """Return the arguments of `os.spawn*` where that is what forks; nothing where it is not.

    It has an event on Windows only. Elsewhere its child calls `exec`, where no guard is.
    """
    if frame.f_globals.get("__name__") != "os" or frame.f_code.co_name != "_spawnvef":
        return ()
    told = frame.f_locals
    return tuple(told.get(name) for name in ("mode", "file", "args", "env"))


def _hook(event: str, args: tuple[object, ...]) -> None:
    if not guards.all or event not in _EVENTS or (guard := guards.here()) is None:
        return
    if event == "os.fork":
        event, args = "os.spawn", _told_to_spawn(sys._getframe(1))
        if not args:
            return
    if wrapped_calls.is_asked() or (frame := asking(1, STARTERS)) is None:
        return
    if event == "os.exec":
        guard.met(frame, "os.exec", "ends the run here", "Start the program as a child.")
    elif event == "os.posix_spawn" and sys._getframe(1).f_globals.get("__name__") == "subprocess":
        return  # Popen has announced it already.
    elif (name := _program_name(event, args)) is not None:
        guard.met(frame, f"the program {name}", f"{OUTSIDE}, nor is what it says", _TOOL)
