"""What one exchange of a connection is while it lasts, and the stream that the client writes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tracefork_core import UsageError
from tracefork_core.adapters import Failure, Head, Live
from tracefork_mcp.formats import LINES
from tracefork_mcp.messages import Id

if TYPE_CHECKING:
    from tracefork_mcp.tap import Tap

_LINES = Head(200, "OK", (LINES,))
RECEIVE = "receive"
"""The method of an exchange for a message that came while no request was open."""


@dataclass(slots=True, eq=False)
class Asked:
    """A request of the client, or a message that came without one, and its exchange."""

    id: Id
    method: str
    token: Id | None = None
    step: str | None = None
    live: Live | None = None
    has_head: bool = False

    async def hear(self, data: bytes) -> None:
        """Record a message of the server."""
        assert self.live is not None
        if not self.has_head:
            await self.live.quiet()
            self.live.head(_LINES)
            self.has_head = True
        await self.live.quiet()
        self.live.chunk(data)

    async def end(self, failure: Failure | None = None) -> None:
        """Record the end."""
        assert self.live is not None
        await self.live.quiet()
        if failure is None:
            self.live.end()
        else:
            self.live.fail(failure)


class Outbox:
    """The stream that the client writes."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap

    async def send(self, item: Any) -> None:
        await self._tap.send(item)

    def close(self) -> None:
        self._tap.begin_closing()

    async def aclose(self) -> None:
        self._tap.begin_closing()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def same_id(id_: Any) -> Any:
    """Return the id of a request, which some servers return as text."""
    return int(id_) if isinstance(id_, str) and id_.isdecimal() else id_


def check_loop() -> None:
    """Raise unless this runs on asyncio.

    Raises:
        UsageError: it runs on another event loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "tracefork: async code can be recorded and replayed on asyncio only, and this runs on "
            "another event loop (trio?). Nothing was sent. Run it on asyncio."
        ) from None
