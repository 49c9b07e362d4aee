"""Count the rounds of the event loop that the cancellation of a live request takes.

A cancelled client closes its connection first, over some rounds. Other callbacks run meanwhile, so
they come before whatever the end of the cancelled task sets off. A replay has no connection to
close, so it waits for the same number of rounds. `tests/order/test_cancelled.py` shows that a
replay without them answers in another order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MOST = 16
"""More rounds than any client takes that does not wait for its peer; those are not counted."""


class Cancellable(Generic[T]):
    """Awaits something else, and counts the `rounds` from its cancellation to its end."""

    def __init__(self, awaited: Awaitable[T]) -> None:
        self._awaited = awaited
        self._cancelled: asyncio.Task[Any] | None = None
        self.rounds = 0

    def __await__(self) -> Generator[Any, Any, T]:
        inner: Any = self._awaited.__await__()
        step = partial(inner.send, None)
        try:
            while True:
                waits_for = step()
                try:
                    step = partial(inner.send, (yield waits_for))
                except BaseException as error:
                    if isinstance(error, asyncio.CancelledError) and self._cancelled is None:
                        self._cancelled = asyncio.current_task()
                        self._at_each_round()
                    step = partial(inner.throw, error)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            self._cancelled = None

    def _at_each_round(self) -> None:
        asyncio.get_running_loop().call_soon(self._count)

    def _count(self) -> None:
        if self._cancelled is None or self.rounds >= MOST:
            return
        if self._cancelled.cancelling():
            self.rounds += 1
            self._at_each_round()
        else:  # A client also cancels parts of its own work, and continues.
            self._cancelled, self.rounds = None, 0
