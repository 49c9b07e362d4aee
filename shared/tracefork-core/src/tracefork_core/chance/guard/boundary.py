"""Report the line of the agent's code that draws from a source the tape does not hold.

Two rules prevent false alarms. Only draws that the user's code asks for count, directly or through
a library that exists to make such values (`ulid`, `faker`). What an HTTP client, an event loop or a
logger draws for itself does not count. And each line is reported once for each thing it does.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import FrameType
from typing import Literal

from tracefork_core.chance.draws import PerSession
from tracefork_core.chance.guard.known_sources import VALUES
from tracefork_core.errors import BoundaryError, BoundaryWarning, UsageError
from tracefork_core.exchange.caller import behind_made, is_users, place
from tracefork_core.exchange.contract import Session

Mode = Literal["warn", "raise", "note"]
"""`note` only lists what it finds, in the receipt."""

_MODES: tuple[Mode, ...] = ("warn", "raise", "note")

OUTSIDE = "is not on the tape"


def as_mode(name: str | None) -> Mode | None:
    """Return the mode of this name; None switches the guard off.

    Raises:
        UsageError: there is no such mode.
    """
    mode = next((mode for mode in _MODES if mode == name), None)
    if name is not None and mode is None:
        raise UsageError(f"tracefork: boundary must be one of {', '.join(_MODES)} (got {name!r}).")
    return mode


@dataclass(frozen=True, slots=True)
class Leak:
    """A draw that a replay cannot repeat: its line, what it does, why it leaks, and a remedy."""

    site: str
    what: str
    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.site}: {self.what} {self.why}. {self.fix}"


class BoundaryGuard:
    """Reports the draws of one session that its tape does not hold.

    Args:
        session: the session of the agent.
        mode: `warn` (a BoundaryWarning, once for each line and thing), `raise` or `note`.
        on_tape: the sources that this session records.
        leaks: each leak is appended here, as text.
        on_leak: called with each error in mode `raise`, so that the run cannot hide it.
    """

    def __init__(
        self,
        session: Session,
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
        self._reported: set[tuple[str, str]] = set()
        # Re-entrant: a finalizer that runs in the middle of this may draw as well.
        self._lock = threading.RLock()

    def report(self, frame: FrameType, what: str, why: str, fix: str) -> None:
        """Report what the line of `frame` is about to do.

        Raises:
            BoundaryError: the mode is `raise`.
        """
        leak = Leak(place(frame), what, why, fix)
        with self._lock:
            if fresh := (leak.site, what) not in self._reported:
                self._reported.add((leak.site, what))
                self._leaks.append(str(leak))
        if self._raises:
            error = BoundaryError(f"tracefork: {leak}")
            self._on_leak(error)
            raise error
        if fresh and self._warns:
            text = f"{what} {why}. {fix}"
            file = frame.f_code.co_filename
            warnings.warn_explicit(text, BoundaryWarning, file, frame.f_lineno)


guards: PerSession[BoundaryGuard] = PerSession()
"""A draw finds the guard of its session here."""


def asking_frame(depth: int, through: Collection[str] = VALUES) -> FrameType | None:
    """Return the frame of the user's code that asks for a value, directly or `through` libraries.

    `depth` counts as in `sys._getframe`, from the caller. None if another library asks.
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
