"""Wait for the disk beside the event loop, in the order in which it was asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from tracefork_core.adapters import in_session

T = TypeVar("T")


class Line:
    """One thread that does things one after the other.

    In a session they are done at once: the order of a run is on its tape, and a thread of ours has
    no place in it.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._thread: ThreadPoolExecutor | None = None

    async def do(self, action: Callable[[], T]) -> T:
        """Return what an action returns."""
        if in_session():
            return action()
        if self._thread is None or self._process != os.getpid():  # A fork leaves the thread behind.
            self._process = os.getpid()
            self._thread = ThreadPoolExecutor(1, "tracefork-checkpoints")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, copy_context().run, action)
