"""Whose draw it is: that of the session that runs here, or nobody's.

Below a seam, outside a session and in a forked child a draw is nobody's: it is real, and off the
tape.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FrameType
from typing import Generic, Protocol, TypeVar

from tracefork_core.errors import UsageError
from tracefork_core.exchange.current import current_session, is_crossing_seam, lone_session


class OfSession(Protocol):
    """Belongs to a session."""

    @property
    def session(self) -> object: ...


T = TypeVar("T", bound=OfSession)


class Open(Generic[T]):
    """What the open sessions have of one kind: their clocks, say."""

    def __init__(self) -> None:
        self.all: list[T] = []
        if hasattr(os, "register_at_fork"):  # Asking for the process id costs more than the rest.
            os.register_at_fork(after_in_child=self.all.clear)

    def here(self) -> T | None:
        """Return what the session has that runs here."""
        if not self.all or is_crossing_seam():
            return None
        session = lone_session() or _session_here()
        for one in self.all:
            if one.session is session:
                return one
        return None


def _session_here() -> object:
    try:
        return current_session()
    except UsageError:
        return None  # A thread of nobody's: to draw must not fail there.


Observer = Callable[[str, object, FrameType | None], None]

observers: list[Observer] = []
"""Append to observe, remove to stop."""


def sighted(source: str, value: object, frame: FrameType | None) -> None:
    """Tell every observer of a draw. Ask only where `observers` is not empty."""
    for observe in tuple(observers):
        observe(source, value, frame)
