"""Tell whether code runs inside an exchange: its own calls are part of that and make no steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_inside: ContextVar[bool] = ContextVar("tracefork_crewai_inside", default=False)

is_inside: Callable[[], bool] = _inside.get
"""Return whether a tool, a memory or an MCP server, or a thread it started, is at work here."""


@contextmanager
def inside() -> Iterator[None]:
    """Mark the code in the block, and the threads that it starts, as part of one exchange."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
