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
"""The prefix of the names of all tracefork packages."""

ABOUT_THE_MACHINE = frozenset({"ctypes.util", "platform", "uuid", "distro.distro"})
"""Modules that run programs to ask about the machine (ldconfig, uname, ip, lsb_release).

They send nothing anywhere, so they are no part of a run. Three are Python's own; SDKs and PostHog
use `distro` to report the Linux they run on.
"""

_not_users: set[str] = set()
"""The names of modules known to belong to a library or to tracefork."""

_MODULES = 1 << 15
"""More than any program loads: if a walk over all modules does not fit, nothing of it is found."""

_reported: ContextVar[str | None] = ContextVar("tracefork_caller", default=None)


@lru_cache(maxsize=_MODULES)
def _is_users(filename: str) -> bool:
    """Return whether a file is the user's."""
    if filename.startswith(("<frozen", _PACKAGE, *_LIBRARIES)):
        return False
    return f"{os.sep}site-packages{os.sep}" not in filename


def caller(depth: int = 1) -> str | None:
    """Return "agent.py:41" for the innermost frame of the user's code, or None."""
    if (reported := _reported.get()) is not None:
        return reported or None
    # Looking at a frame creates the object: each costs a recorded call some microseconds.
    module_at = getattr(sys, "_getframemodulename", _unknown)
    while module_at(depth) in _not_users:
        depth += 1
    try:
        frame: FrameType | None = sys._getframe(depth)
    except ValueError:
        return None  # The stack is not so deep.
    while frame is not None:
        if (file := _users_file(frame)) is not None:
            return _place(file, frame.f_lineno)
        frame = frame.f_back
    return None


def _unknown(depth: int) -> str | None:
    """Return None: Python 3.11 cannot name a module without creating its frame."""
    return None


@contextmanager
def called_from(where: str | None) -> Iterator[None]:
    """Report `where` as the caller inside: the call was made in another process."""
    token = _reported.set(where or "")
    try:
        yield
    finally:
        _reported.reset(token)


def is_users(frame: FrameType) -> bool:
    """Return whether a frame runs code of the user, and not of a library or of tracefork."""
    return _users_file(frame) is not None


def _users_file(frame: FrameType) -> str | None:
    """Return the file of the code that a frame runs, if it is the user's."""
    names = frame.f_globals
    name, file = str(names.get("__name__")), names.get("__file__")
    # Most frames are a library's. Reading `f_code` raises an audit event, so ask the module first.
    if not _can_be_users(name, file):
        if name != "__main__":  # Ours may have been `__main__` before the user's.
            _not_users.add(name)
        return None
    code = frame.f_code.co_filename
    # Code without a file is the user's if it was typed or passed to `python -c`.
    is_users = _is_users(code) and (code[:1] != "<" or (name == "__main__" and not file))
    return code if is_users else None


def behind_made(frame: FrameType | None) -> FrameType | None:
    """Return the first frame that runs no generated code, as of dataclasses or exec."""
    while frame is not None and _is_made(frame):
        frame = frame.f_back
    return frame


def _is_made(frame: FrameType) -> bool:
    names, code = frame.f_globals, frame.f_code.co_filename
    if code[:1] != "<" or code.startswith("<frozen") or is_users(frame):
        return False
    return _can_be_users(str(names.get("__name__")), names.get("__file__"))


def is_users_module(names: Mapping[str, object]) -> bool:
    """Return whether a module with these globals is the user's."""
    name, file = str(names.get("__name__")), names.get("__file__")
    return _can_be_users(name, file) and (isinstance(file, str) or name == "__main__")


@lru_cache(maxsize=_MODULES)
def _can_be_users(name: str, file: object) -> bool:
    """Return whether a module is neither ours nor a library's; a module without file may be."""
    if name.startswith(_OURS):
        return False
    return not file or _is_users(str(file))


def place(frame: FrameType) -> str:
    """Return "agent.py:41" for the line that a frame is at."""
    return _place(frame.f_code.co_filename, frame.f_lineno)


def _place(file: str, line: int) -> str:
    name = _cell(file) or os.path.basename(file)  # noqa: PTH119 - ten times faster
    return f"{name}:{line}"


def _cell(file: str) -> str | None:
    """Return "In [3]" for the file that a cell of a notebook is compiled as, by a hash."""
    ipython = sys.modules.get("IPython.core.getipython")
    shell = ipython.get_ipython() if ipython is not None else None
    number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return None if number is None else f"In [{number}]"
