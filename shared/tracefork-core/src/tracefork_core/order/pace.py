"""When the next delivery of a replay may come: as soon as order allows, or at a recorded pace."""

from __future__ import annotations

from tracefork_core.patching.real_clock import monotonic_ns


class Pace:
    """How fast a replay goes.

    Args:
        speed: None for as fast as order allows; 1 for the pace of the recording, 2 for twice that.
    """

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._began: tuple[int, int] | None = None

    def asked(self, moment: int) -> None:
        """Note that something is asked that was asked at this moment of the recording."""
        if self._began is None:
            self._began = moment, monotonic_ns()

    def seconds_until(self, moment: int) -> float:
        """Return how long a delivery must be held back that came at this moment."""
        if self._speed is None or self._began is None:
            return 0.0
        recorded, began = self._began
        due = began + int((moment - recorded) / self._speed)
        return max(due - monotonic_ns(), 0) / 1e9

    def stretched(self, seconds: float) -> float:
        """Return how long a sleep takes now."""
        return seconds / self._speed if self._speed is not None else 0.0
