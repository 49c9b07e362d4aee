"""When the next delivery of a replay may come: in its turn, or at a recorded pace."""

from __future__ import annotations

from tracefork_core.patching.real_clock import monotonic_ns


class Pace:
    """How fast a replay runs.

    Args:
        speed: None for as fast as possible; 1 for the pace of the recording, 2 for twice that.
    """

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._began: tuple[int, int] | None = None

    def asked(self, moment: int) -> None:
        """Note a request that was made at this moment of the recording."""
        if self._began is None:
            self._began = moment, monotonic_ns()

    def seconds_until(self, moment: int) -> float:
        """Return how long to hold back a delivery that arrived at this moment."""
        if self._speed is None or self._began is None:
            return 0.0
        recorded, began = self._began
        due = began + int((moment - recorded) / self._speed)
        return max(due - monotonic_ns(), 0) / 1e9

    def stretched(self, seconds: float) -> float:
        """Return how long a sleep takes now."""
        return seconds / self._speed if self._speed is not None else 0.0
