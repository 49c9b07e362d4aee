"""Connect to a server when the first live call needs it: in a replay never, in a fork late."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tracefork_core.adapters.session_here import answering_tape
from tracefork_core.exchange.current import crossing_seam

if TYPE_CHECKING:
    from asyncio import Lock

Connect = Callable[[], Awaitable[object]]


def _new_lock() -> Lock:
    from asyncio import Lock

    return Lock()


@dataclass(slots=True)
class _Waiting:
    connect: Connect
    lock: Lock = field(default_factory=_new_lock)
    is_made: bool = False


class Late:
    """Connections that wait for the first live call of a replay or fork.

    Wrap the framework's `connect` with `put_off`, await `made` right before each live call, and ask
    `forget` in the framework's `close`::

        async def connected(self):
            if not late.put_off(self, partial(connect, self)):
                await connect(self)

        async def called(self, name, arguments):
            async def run(**told):
                await late.made(self)
                return await call(self, name, told)
            return await atool_exchange(name, arguments, run)

        async def closed(self):
            if not late.forget(self):
                await close(self)
    """

    def __init__(self) -> None:
        self._waiting: WeakKeyDictionary[Any, _Waiting] = WeakKeyDictionary()

    def put_off(self, holder: object, connect: Connect) -> bool:
        """Put off a connection, and return whether that was done: not where a run is recorded.

        `holder` is the object that is connected; it can be referred to weakly.
        """
        if answering_tape() is None:
            return False
        self._waiting[holder] = _Waiting(connect)
        return True

    async def made(self, holder: object) -> None:
        """Make the connection that was put off, once; what it sends is not recorded."""
        waiting = self._waiting.get(holder)
        if waiting is None:
            return
        async with waiting.lock:
            if not waiting.is_made:
                with crossing_seam():
                    await waiting.connect()
                waiting.is_made = True

    def waits(self, holder: object) -> bool:
        """Return whether a connection was put off and not made so far."""
        waiting = self._waiting.get(holder)
        return waiting is not None and not waiting.is_made

    def forget(self, holder: object) -> bool:
        """Forget a connection, and return whether it was put off and never made."""
        waits = self.waits(holder)
        self._waiting.pop(holder, None)
        return waits
