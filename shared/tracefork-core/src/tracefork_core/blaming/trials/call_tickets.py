"""Numbers of calls that several processes make within one limit: each is taken before its call.

What a process took before it died stays taken. Whoever sees the folder may take one.
"""

from __future__ import annotations

import os
from pathlib import Path


def take(folder: Path, most: int | None) -> bool:
    """Take the next number, which nobody else has; return whether there was one below the limit."""
    number = taken(folder)
    folder.mkdir(exist_ok=True)
    while most is None or number < most:
        try:
            os.close(os.open(folder / str(number), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            number += 1
        else:
            return True
    return False


def taken(folder: Path) -> int:
    """Return how many were taken."""
    return sum(1 for _ in folder.iterdir()) if folder.exists() else 0
