"""Bodies in which no secret was found, so that what is sent again is not searched again.

A transcript is sent in full at every step: of a large body only the part that is new needs a look.
"""

from __future__ import annotations

from collections import deque

_BLOCK = 16 * 1024
_LARGEST = 16 * 1024 * 1024
_KEPT = 4


class Clean:
    """The last large bodies that held no secret. No secret is longer than `longest` bytes."""

    def __init__(self, longest: int) -> None:
        self._around = longest
        self._bodies: deque[bytes] = deque(maxlen=_KEPT)

    def add(self, body: bytes) -> None:
        """Remember a body that was searched in vain."""
        if 2 * self._around < len(body) <= _LARGEST:
            self._bodies.appendleft(body)

    def part_to_search(self, body: bytes) -> tuple[int, int]:
        """Return from where to where a body differs from a clean one, with what lies around."""
        if len(body) <= 2 * self._around:
            return 0, len(body)
        best: tuple[int, int] = (0, len(body))
        for known in self._bodies:
            start = _same_start(known, body)
            if start > best[0]:
                best = start, len(body) - _same_end(known, body, start)
            if 2 * start > len(body):
                break  # The step before: nothing is nearer.
        return max(0, best[0] - self._around), min(len(body), best[1] + self._around)


def _same_start(known: bytes, body: bytes) -> int:
    same, upto = 0, min(len(known), len(body))
    while same + _BLOCK <= upto and body.startswith(known[same : same + _BLOCK], same):
        same += _BLOCK
    return same


def _same_end(known: bytes, body: bytes, start: int) -> int:
    same, upto = 0, min(len(known), len(body)) - start
    while same + _BLOCK <= upto:
        last = len(known) - same
        if not body.endswith(known[last - _BLOCK : last], 0, len(body) - same):
            break
        same += _BLOCK
    return same
