"""How a websocket waits: on an event loop, or in a thread.

Everything else about a websocket is the same for both, and is written once, as coroutines. `run`
drives those of a thread: nothing in them is ever suspended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from tracefork_core.exchange.contract import Failure, Head, Live, Recorded

T = TypeVar("T")
_LOOK_SECONDS = 0.25
"""How often a thread looks whether the session has failed meanwhile."""


class Waiting(Protocol):
    """How the agent waits for what a session answers, and for another part of itself."""

    async def quiet(self, live: Live) -> None:
        """Wait until the effects of the last delivery are done."""

    async def head(self, answer: Recorded) -> Head | Failure: ...

    async def chunk(self, answer: Recorded) -> bytes | Failure | None: ...

    async def change(self, seen: int) -> None:
        """Wait until there were more changes than `seen`; in a thread, for a moment at most."""

    @property
    def changes(self) -> int:
        """How many changes there were."""

    def changed(self) -> None:
        """Count a change, and wake what waits for one."""


class OnLoop:
    """Waits on an event loop."""

    def __init__(self) -> None:
        self.changes = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def quiet(self, live: Live) -> None:
        await live.quiet()

    async def head(self, answer: Recorded) -> Head | Failure:
        return await answer.areceive_head()

    async def chunk(self, answer: Recorded) -> bytes | Failure | None:
        return await answer.areceive_chunk()

    async def change(self, seen: int) -> None:
        if self.changes == seen:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def changed(self) -> None:
        self.changes += 1
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            with suppress(asyncio.InvalidStateError):  # Its task was cancelled.
                future.set_result(None)


class InThread:
    """Waits in a thread. Another thread may send meanwhile."""

    def __init__(self) -> None:
        self.changes = 0
        self._change = threading.Condition()

    async def quiet(self, live: Live) -> None:
        """Do nothing: a delivery in a thread waits by itself."""

    async def head(self, answer: Recorded) -> Head | Failure:
        return answer.receive_head()

    async def chunk(self, answer: Recorded) -> bytes | Failure | None:
        return answer.receive_chunk()

    async def change(self, seen: int) -> None:
        with self._change:
            if self.changes == seen:
                self._change.wait(_LOOK_SECONDS)

    def changed(self) -> None:
        with self._change:
            self.changes += 1
            self._change.notify_all()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that waits in this thread."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise RuntimeError("a coroutine of a thread was suspended")
