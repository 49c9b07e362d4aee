"""An exchange with Claude Code while it lasts."""

from __future__ import annotations

from dataclasses import dataclass

from tracefork_claude_agent_sdk import lines
from tracefork_claude_agent_sdk.lines import Line
from tracefork_core.adapters import Failure, Live


@dataclass(slots=True, eq=False)
class Pending:
    """An exchange that Claude Code has not answered completely.

    Attributes:
        request_id: the id of the request; None for a prompt.
        live: where it is recorded.
        has_head: whether a line came.
        is_over: whether the result of the turn came. Lines may follow it.
    """

    request_id: str | None
    live: Live
    has_head: bool = False
    is_over: bool = False

    async def hear(self, line: Line) -> None:
        """Record a line of Claude Code."""
        if not self.has_head:
            await self.live.quiet()
            self.live.head(lines.LINES)
            self.has_head = True
        await self.live.quiet()
        self.live.chunk(lines.stored(line))
        self.is_over = self.is_over or line.get("type") == "result"

    async def end(self, failure: Failure | None = None) -> None:
        """Record the end."""
        await self.live.quiet()
        if failure is not None:
            self.live.fail(failure)
            return
        if not self.has_head:
            self.live.head(lines.LINES)
            await self.live.quiet()
        self.live.end()
