"""Write to disk in a thread beside the event loop, one action after the other."""

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
    """One thread that performs actions in the order they were submitted.

    In a session, actions run in the caller instead: a tape records the order of a run, and a thread
    of tracefork must not be part of it.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._thread: ThreadPoolExecutor | None = None

    async def do(self, action: Callable[[], T]) -> T:
        """Perform an action and return its result."""
        if in_session():
            return action()
        if self._thread is None or self._process != os.getpid():  # A forked process lacks it.
            self._process = os.getpid()
            self._thread = ThreadPoolExecutor(1, "tracefork-checkpoints")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, copy_context().run, action)
