"""Close pooled connections whose event loop is gone, once in each session.

A client that outlives `asyncio.run` keeps idle connections of a loop that is closed. The next
request on one of them fails ("Event loop is closed"). A program that runs its agent once never
meets that. A blame does: it runs the agent again and again in one process, and each of its forks is
a session. So what an earlier session left in the pool is closed before a later one sends anything.

Within one session nothing is closed: a program that fails without tracefork fails with it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

_Use = tuple["ReferenceType[asyncio.AbstractEventLoop]", "ReferenceType[object]"]


class Pools:
    """The pools of the async transports of httpx or httpx2."""

    def __init__(self, pooled: type) -> None:
        self._pooled = pooled
        self._used: WeakKeyDictionary[Any, _Use] = WeakKeyDictionary()
        """The loop and the session that each transport was last used in."""

    def note(self, transport: Any, session: object) -> None:
        """Note that a session sends a request in the loop that runs."""
        if isinstance(transport, self._pooled):
            self._used[transport] = ref(asyncio.get_running_loop()), ref(session)

    async def close_stale(self, transport: Any, session: object) -> None:
        """Close the idle connections of another session's loop, if that is closed."""
        use = self._used.get(transport) if isinstance(transport, self._pooled) else None
        if use is None:
            return
        loop = use[0]()
        if use[1]() is session or not (loop is None or loop.is_closed()):
            return
        del self._used[transport]
        for connection in transport._pool.connections:
            if connection.is_idle():
                with suppress(Exception):  # It marks itself as closed, then needs its loop.
                    await connection.aclose()
