"""Wake those who wait: a thread, or a task on an event loop, from wherever they are woken."""

from __future__ import annotations

import asyncio
import threading
from asyncio import wait
from collections.abc import Callable, Sized
from contextlib import suppress


class Locked:
    """Hold a lock, and do what is `left` to do after letting it go."""

    def __init__(self, lock: threading.Lock, left: Sized, afterwards: Callable[[], None]) -> None:
        self._lock = lock
        self._left = left
        self._afterwards = afterwards

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        if self._left:
            self._afterwards()


def sleeper() -> tuple[asyncio.Future[None], Callable[[], None]]:
    """Return what a task of this loop waits for, and what wakes it from any thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        with suppress(RuntimeError):  # A loop that was closed has nobody to wake.
            loop.call_soon_threadsafe(_resolve, future)

    return future, wake


async def woken(future: asyncio.Future[None], seconds: float) -> bool:
    """Wait to be woken, for so long, and return whether that happened."""
    done, _ = await wait([future], timeout=seconds)
    return bool(done)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
