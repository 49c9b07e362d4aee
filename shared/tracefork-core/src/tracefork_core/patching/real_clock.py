"""Read the time that passes from a clock that no library can stop.

freezegun replaces `time.monotonic` by a frozen clock, under every name in every module. A class
attribute escapes it.
"""

from __future__ import annotations

import sys
import time


class _Real:
    # If time is frozen while this is imported, only freezegun still has the real function.
    ns = getattr(sys.modules.get("freezegun.api"), "real_monotonic_ns", time.monotonic_ns)


def monotonic_ns() -> int:
    """Return nanoseconds of a clock that never goes back."""
    now: int = _Real.ns()
    return now
