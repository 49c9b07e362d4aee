"""Read the sizes and ages that bound a folder of tapes: "500MB", "7d"."""

from __future__ import annotations

import re
from datetime import timedelta

from tracefork_core.errors import UsageError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB)", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_AGE = re.compile(r"(\d+)\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def is_number(value: object) -> bool:
    """Return whether a value is a number and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def bytes_of(size: object, name: str) -> int:
    """Return a number of bytes, given as such or as text like "500MB"; `name` is the option's.

    Raises:
        UsageError: it is no size, or not above 0.
    """
    if isinstance(size, str):
        match = _SIZE.fullmatch(size.strip())
        number = int(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    else:
        number = size if isinstance(size, int) and is_number(size) else 0
    if number <= 0:
        raise UsageError(
            f"tracefork: {name} must be a size above 0, like 500MB or 2GB (got {size!r})."
        )
    return number


def seconds_of(age: object, name: str) -> float:
    """Return a number of seconds, given as such, as text like "12h", or as a timedelta.

    Raises:
        UsageError: it is no age, or not above 0.
    """
    if isinstance(age, timedelta):
        seconds = age.total_seconds()
    elif isinstance(age, str):
        match = _AGE.fullmatch(age.strip())
        seconds = float(int(match[1]) * _SECONDS[match[2]]) if match else 0.0
    else:
        seconds = float(age) if isinstance(age, (int, float)) and is_number(age) else 0.0
    if not seconds > 0:
        raise UsageError(f"tracefork: {name} must be an age, like 12h, 7d or 8w (got {age!r}).")
    return seconds


def count_of(count: object, name: str) -> int:
    """Return a number of tapes.

    Raises:
        UsageError: it is not a whole number above 0.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        raise UsageError(f"tracefork: {name} must be a whole number above 0 (got {count!r}).")
    return count
