"""The time that passes, by a clock that no library of the program's stops.

freezegun replaces `time.monotonic` and its like by a frozen time, in every module that holds one by
a name: here they are held in a class.
"""

from __future__ import annotations

import sys
import time


class _Kept:
    # Where this is imported while time is frozen, freezegun alone still has the real one.
    ns = getattr(sys.modules.get("freezegun.api"), "real_monotonic_ns", time.monotonic_ns)


def monotonic_ns() -> int:
    """Return nanoseconds of a clock that only goes forward."""
    now: int = _Kept.ns()
    return now
