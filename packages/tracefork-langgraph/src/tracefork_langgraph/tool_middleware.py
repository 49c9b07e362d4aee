"""Middleware for tools that `attach` cannot find: those that appear while an agent runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from tracefork_langgraph.tool_effects import is_left_live
from tracefork_langgraph.tools import bound_copy, is_bound

Result: TypeAlias = "ToolMessage | Command[Any]"


class TapeToolMiddleware(AgentMiddleware):
    """Record tool calls as exchanges, including those of tools that another middleware adds.

    Put it last in the agent's middleware list, next to the tool. There it sees the tool that is
    actually called, and every attempt. Outside a session it does nothing.
    """

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        """Let a bound copy of the tool do the work."""
        return handler(_bound(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """Let a bound copy of the tool do the work."""
        return await handler(_bound(request))


def _bound(request: ToolCallRequest) -> ToolCallRequest:
    tool = request.tool
    if tool is None or is_bound(tool) or is_left_live(tool):
        return request
    return request.override(tool=bound_copy(tool))
