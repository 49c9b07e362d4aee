"""Whether this code runs inside of an exchange: what it does there is part of that, and no step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_inside: ContextVar[bool] = ContextVar("tracefork_crewai_inside", default=False)

is_inside: Callable[[], bool] = _inside.get
"""Return whether a tool, a memory or a server of tools does its work here, or what it started."""


@contextmanager
def inside() -> Iterator[None]:
    """Mark what runs here, and the threads that it starts, as part of one exchange."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
