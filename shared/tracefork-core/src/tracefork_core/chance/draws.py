"""Find the session that a draw belongs to, and report draws to observers.

A draw is one read of the clock or of randomness. Below a seam, outside a session and in a forked
child it belongs to no session: it is real, and off the tape.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FrameType
from typing import Generic, Protocol, TypeVar

from tracefork_core.exchange.current import current_session, is_crossing_seam


class OfSession(Protocol):
    """An object that belongs to a session: its clock, say."""

    @property
    def session(self) -> object: ...


T = TypeVar("T", bound=OfSession)


class PerSession(Generic[T]):
    """The objects of one kind that the open sessions have, one each: their clocks, say."""

    def __init__(self) -> None:
        self._by_session: dict[int, T] = {}
        if hasattr(os, "register_at_fork"):  # To compare process ids costs more than all the rest.
            os.register_at_fork(after_in_child=self._by_session.clear)

    def __len__(self) -> int:
        return len(self._by_session)

    def add(self, member: T) -> None:
        """Use an object for the code of its session."""
        self._by_session[id(member.session)] = member

    def remove(self, member: T) -> None:
        """Undo `add`."""
        self._by_session.pop(id(member.session), None)

    def of(self, session: object) -> T | None:
        """Return the object of a session."""
        return self._by_session.get(id(session))

    def here(self) -> T | None:
        """Return the object of the session that the calling code runs under."""
        if not self._by_session or is_crossing_seam():
            return None
        session = current_session()
        return None if session is None else self._by_session.get(id(session))


Observer = Callable[[str, object, FrameType | None], None]
"""Takes the source of a draw, its value and the frame that drew.

Sources are "clock" (nanoseconds since the epoch), "entropy" (the bytes drawn), "random" (a float or
an int) and the labels of known functions, such as "uuid_utils.uuid4" (what the function returned).
An observer runs in the thread or task that draws: it must be quick, must not raise, and must not
draw.
"""

observers: list[Observer] = []
"""Append to observe, remove to stop. While it is empty, a draw costs nothing more."""


def report_draw(source: str, value: object, frame: FrameType | None) -> None:
    """Call every observer. Call this only if `observers` is not empty."""
    for observe in tuple(observers):
        observe(source, value, frame)
