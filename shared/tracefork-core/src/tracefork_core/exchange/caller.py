"""Find the line of the user's own code that led here."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep
_LIBRARIES = tuple(
    {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


@lru_cache(maxsize=4096)
def _is_users(filename: str) -> bool:
    if filename.startswith("<") or filename.startswith(_PACKAGE):
        return False
    inside_library = f"{os.sep}site-packages{os.sep}" in filename
    return not (inside_library or filename.startswith(_LIBRARIES))


def caller(depth: int = 1) -> str | None:
    """Return "agent.py:41" for the innermost frame of the user's code, or None."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return None
