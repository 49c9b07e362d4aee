"""Switch a guard on: it wraps functions, watches reads of the clock, and listens to audit events.

The audit events are those of programs that start and do not join the session. Python never removes
an audit hook: without a guard ours returns at once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType

from tracefork_core.chance import clock, system_clock
from tracefork_core.chance.guard import wrapped_calls
from tracefork_core.chance.guard.boundary import OUTSIDE, BoundaryGuard, asking_frame, guards
from tracefork_core.chance.guard.known_sources import CLOCK, DOORS, STARTERS

ProgramName = Callable[[str, tuple[object, ...]], str | None]
"""Returns the name of the program that an audit event announces; None if it joins the session."""

_PROGRAMS = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.spawn", "pty.spawn"})
_EVENTS = _PROGRAMS | {"os.exec", "os.fork"}

_TOOL = "Pass its output to the agent from outside, or call it in a tool (tracefork.tool)."

_lock = threading.Lock()
_clocks: dict[BoundaryGuard, clock.RecordedClock] = {}
_installed = False


class _SeenClock(clock.RecordedClock):
    """The clock of a session that does not record it: real, and each read is reported."""

    def __init__(self, guard: BoundaryGuard) -> None:
        super().__init__(guard.session)
        self.is_plain = False  # So that `read` is called each time.
        self._guard = guard

    def read(self, site: str) -> int:
        if not wrapped_calls.is_inside() and (frame := asking_frame(1)) is not None:
            self._guard.report(
                frame,
                "a read of the clock",
                f"{OUTSIDE}: the clock of this run was switched off",
                "Leave the clock on, or read run.nondet.now().",
            )
        return system_clock.real_ns()


def start(guard: BoundaryGuard, program_name: ProgramName) -> None:
    """Begin to report what the tape of a session does not hold."""
    global _installed, _program_name
    with _lock:
        _program_name = program_name
        guards.add(guard)
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
        guards.remove(guard)
        if (seen := _clocks.pop(guard, None)) is not None:
            clock.stop(seen)
        if not guards:
            wrapped_calls.unwrap()


def _unnamed(event: str, args: tuple[object, ...]) -> str | None:
    return None


_program_name: ProgramName = _unnamed


def _spawn_arguments(frame: FrameType) -> tuple[object, ...]:
    """Return the arguments of `os.spawn*` if it is what forks, else an empty tuple.

    `os.spawn*` has an audit event on Windows only. Elsewhere it forks, and its child calls `exec`,
    where no guard is.
    """
    if frame.f_globals.get("__name__") != "os" or frame.f_code.co_name != "_spawnvef":
        return ()
    arguments = frame.f_locals
    return tuple(arguments.get(name) for name in ("mode", "file", "args", "env"))


def _hook(event: str, args: tuple[object, ...]) -> None:
    if not guards or event not in _EVENTS or (guard := guards.here()) is None:
        return
    if event == "os.fork":
        event, args = "os.spawn", _spawn_arguments(sys._getframe(1))
        if not args:
            return
    if wrapped_calls.is_inside() or (frame := asking_frame(1, STARTERS)) is None:
        return
    if event == "os.exec":
        guard.report(frame, "os.exec", "ends the run here", "Start a subprocess instead.")
    elif event == "os.posix_spawn" and sys._getframe(1).f_globals.get("__name__") == "subprocess":
        return  # Popen has announced it already.
    elif (name := _program_name(event, args)) is not None:
        guard.report(frame, f"the program {name}", f"{OUTSIDE}, and neither is its output", _TOOL)
