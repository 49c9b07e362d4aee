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
    if filename.startswith(("<frozen", _PACKAGE, *_LIBRARIES)):
        return False
    return f"{os.sep}site-packages{os.sep}" not in filename


def caller(depth: int = 1) -> str | None:
    """Return "agent.py:41" for the innermost frame of the user's code, or None."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        # Most frames are a library's. Reading `f_code` is audited: dear while a guard listens.
        if (module := frame.f_globals.get("__file__")) and not _is_users(module):
            frame = frame.f_back
            continue
        code = frame.f_code.co_filename
        # Code without a file is the user's where it was typed or handed to `python -c`.
        if _is_users(code) and (code[:1] != "<" or frame.f_globals.get("__name__") == "__main__"):
            return f"{os.path.basename(code)}:{frame.f_lineno}"  # noqa: PTH119 - ten times faster
        frame = frame.f_back
    return None
