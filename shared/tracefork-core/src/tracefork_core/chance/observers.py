"""Who wants to see each draw as it is made, while it is made.

An observer is told the source, the value and the frame that drew. Sources are "clock" (nanoseconds
since the epoch), "entropy" (the bytes drawn), "random" (a float or an int) and the labels of doors,
such as "uuid_utils.uuid4" (whatever the function returned). It is called on the agent's own line of
execution: it must be quick, must not raise, and must not draw. With nobody here a draw costs
nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType

Observer = Callable[[str, object, FrameType | None], None]

observers: list[Observer] = []
"""Append to observe, remove to stop."""


def sighted(source: str, value: object, frame: FrameType | None) -> None:
    """Tell every observer of a draw. Ask only where `observers` is not empty."""
    for observe in tuple(observers):
        observe(source, value, frame)
