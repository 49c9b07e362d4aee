"""Forked children that do one thing and end, so that they do not run the other tests."""

from __future__ import annotations

import os
from collections.abc import Callable


def fork(action: Callable[[], object]) -> int:
    """Return the pid of a child that does `action`; it exits with 0 if nothing was raised."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        action()
        status = 0
    finally:
        os._exit(status)
