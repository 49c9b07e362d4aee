"""Find the line of the user's own code that led here."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep
_LIBRARIES = tuple(
    {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)

_OURS = "tracefork_"
"""What the packages of tracefork begin with, wherever they are installed."""

_told: ContextVar[str | None] = ContextVar("tracefork_caller", default=None)


@lru_cache(maxsize=4096)
def _is_users(filename: str) -> bool:
    if filename.startswith(("<frozen", _PACKAGE, *_LIBRARIES)):
        return False
    return f"{os.sep}site-packages{os.sep}" not in filename


def caller(depth: int = 1) -> str | None:
    """Return "agent.py:41" for the innermost frame of the user's code, or None."""
    if (told := _told.get()) is not None:
        return told or None
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if is_users(frame):
            return place(frame)
        frame = frame.f_back
    return None


@contextmanager
def called_from(where: str | None) -> Iterator[None]:
    """Speak for another process: what is asked here was asked there."""
    token = _told.set(where or "")
    try:
        yield
    finally:
        _told.reset(token)


def is_users(frame: FrameType) -> bool:
    """Return whether a frame runs code of the user, and not of a library or of tracefork."""
    if _is_ours(frame.f_globals):
        return False
    # Most frames are a library's. Reading `f_code` is audited: dear while a guard listens.
    if (module := frame.f_globals.get("__file__")) and not _is_users(module):
        return False
    code = frame.f_code.co_filename
    # Code without a file is the user's where it was typed or handed to `python -c`.
    return _is_users(code) and (code[:1] != "<" or frame.f_globals.get("__name__") == "__main__")


def is_users_module(names: Mapping[str, object]) -> bool:
    """Return whether the module of these names is the user's: a typed script, or no library's."""
    if _is_ours(names):
        return False
    file = names.get("__file__")
    return _is_users(file) if isinstance(file, str) else names.get("__name__") == "__main__"


def _is_ours(names: Mapping[str, object]) -> bool:
    return str(names.get("__name__")).startswith(_OURS)


def place(frame: FrameType) -> str:
    """Return "agent.py:41" for the line that a frame is at."""
    name = os.path.basename(frame.f_code.co_filename)  # noqa: PTH119 - ten times faster
    return f"{name}:{frame.f_lineno}"
