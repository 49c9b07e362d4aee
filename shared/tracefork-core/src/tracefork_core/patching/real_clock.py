"""Python's own clocks, whatever a program has put in their place.

A mock, freezegun and gevent replace `time.time` and its siblings by name. So core reads the time
from a second instance of the module `time`, which no name leads to. Its functions share their
definitions in C with those of the first: time-machine patches both.

time-machine takes what it finds under these names for functions in C, and a Python function in
their place ends the process. `in_place` puts the real ones there for the moment in which it looks.
"""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import BuiltinImporter
from types import BuiltinFunctionType, ModuleType
from typing import Any

_CLOCKS = ("time", "time_ns", "clock_gettime", "clock_gettime_ns", "gmtime", "localtime")
_CLASSES = ("datetime", "date")


def _second_instance() -> Any:
    spec = BuiltinImporter.find_spec("time")
    module = None if spec is None else BuiltinImporter.create_module(spec)
    if module is None:
        return time  # A Python that has it in a file.
    BuiltinImporter.exec_module(module)
    return module


real_time = _second_instance()
"""The module `time`, out of reach of patches by name."""


def time_ns() -> int:
    """Return nanoseconds since the epoch."""
    now: int = real_time.time_ns()
    return now


def monotonic_ns() -> int:
    """Return nanoseconds of a clock that never goes back."""
    now: int = real_time.monotonic_ns()
    return now


def replaced() -> list[str]:
    """Return the clocks that the program has put something else in place of, like "time.time"."""
    return [f"{module.__name__}.{name}" for module, name, _ in _foreign()]


@contextmanager
def in_place() -> Iterator[None]:
    """Put Python's own clocks under their names, and what was there back.

    Other threads see them, too, for less than a millisecond, and once for an import.
    """
    foreign = [(module, name, real, vars(module)[name]) for module, name, real in _foreign()]
    for module, name, real, _ in foreign:
        setattr(module, name, real)
    try:
        yield
    finally:
        for module, name, real, other in foreign:
            if vars(module).get(name) is real:
                setattr(module, name, other)


def _foreign() -> Iterator[tuple[ModuleType, str, object]]:
    """Yield each clock that is not Python's own: its module, its name, and the real one."""
    for name in (*_CLOCKS, "strftime"):
        there = vars(time).get(name)
        if there is not None and not _is_own(there, name):
            yield time, name, getattr(real_time, name)
    for name in _CLASSES:
        there = vars(datetime).get(name)
        if there is not None and there is not (real := _real_class(name)):
            yield datetime, name, real


def _is_own(function: object, name: str) -> bool:
    if type(function) is not BuiltinFunctionType or function.__name__ != name:
        return False
    return function.__self__ is time or function.__self__ is real_time


def _real_class(name: str) -> object:
    # freezegun replaces it in the module in C as well, by a subclass.
    there: object = getattr(sys.modules.get("_datetime", datetime), name)
    bases = there.__mro__ if isinstance(there, type) else ()
    return next((base for base in bases if base.__module__ == "datetime"), there)
