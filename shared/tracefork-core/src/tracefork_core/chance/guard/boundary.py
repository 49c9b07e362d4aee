"""Name the line of the agent's code that draws from a source the tape does not hold.

Two rules keep false alarms away. Only the line that asks for a value counts: code of the user, or a
library whose whole business is such values (`ulid`, `faker`) on behalf of a line of the user. What
an HTTP client, an event loop or a logger draws for itself is not looked at. And each line is named
once for each thing it does.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import FrameType
from typing import Literal

from tracefork_core.chance.draws import Open
from tracefork_core.chance.guard.known_sources import VALUES
from tracefork_core.errors import BoundaryError, BoundaryWarning, UsageError
from tracefork_core.exchange.caller import behind_made, is_users, place

Mode = Literal["warn", "raise", "note"]
"""`note` only lists what it finds."""

_MODES: tuple[Mode, ...] = ("warn", "raise", "note")

OUTSIDE = "is not on the tape"


def as_mode(name: str | None) -> Mode | None:
    """Return the mode of this name; None guards nothing.

    Raises:
        UsageError: there is no such mode.
    """
    found = next((mode for mode in _MODES if mode == name), None)
    if name is not None and found is None:
        raise UsageError(f"tracefork: no boundary {name!r}: it is {', '.join(_MODES)}.")
    return found


@dataclass(frozen=True, slots=True)
class Leak:
    """Something that a replay cannot give again: what was done, why that is so, what to do."""

    site: str
    what: str
    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.site}: {self.what} {self.why}. {self.fix}"


class BoundaryGuard:
    """Watches the draws of one session that go past its tape.

    Args:
        session: whose agent is watched.
        mode: `warn` (a BoundaryWarning, once for each line and thing), `raise` or `note`.
        on_tape: the sources that this session puts on its tape.
        leaks: where what was found is listed, as text.
        on_leak: told of each error in mode `raise`, so that the run cannot hide it.
    """

    def __init__(
        self,
        session: object,
        mode: Mode,
        *,
        on_tape: Collection[str],
        leaks: list[str],
        on_leak: Callable[[BoundaryError], object],
    ) -> None:
        self.session = session
        self.on_tape = frozenset(on_tape)
        self._warns = mode == "warn"
        self._raises = mode == "raise"
        self._leaks = leaks
        self._on_leak = on_leak
        self._met: set[tuple[str, str]] = set()
        # Re-entrant: a finalizer that runs in the middle of this may draw as well.
        self._lock = threading.RLock()

    def met(self, frame: FrameType, what: str, why: str, fix: str) -> None:
        """Name what the line of `frame` is about to do.

        Raises:
            BoundaryError: the mode is `raise`.
        """
        leak = Leak(place(frame), what, why, fix)
        with self._lock:
            if fresh := (leak.site, what) not in self._met:
                self._met.add((leak.site, what))
                self._leaks.append(str(leak))
        if self._raises:
            error = BoundaryError(f"tracefork: {leak}")
            self._on_leak(error)
            raise error
        if fresh and self._warns:
            text = f"{what} {why}. {fix}"
            file = frame.f_code.co_filename
            warnings.warn_explicit(text, BoundaryWarning, file, frame.f_lineno)


guards: Open[BoundaryGuard] = Open()
"""Where a draw of this process looks for the guard of its session."""


def asking(depth: int, through: Collection[str] = VALUES) -> FrameType | None:
    """Return the line of the user's code that asks, directly or `through` libraries of values.

    `depth` is as in `sys._getframe`, counted from the caller. None where another library asks.
    """
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        if top != "tracefork_core" and top not in through:
            frame = behind_made(frame)
            return frame if frame is not None and is_users(frame) else None
        frame = frame.f_back
    return None
