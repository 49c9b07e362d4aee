"""Make steps of the agents of autogen-agentchat.

A team, a program or another agent calls `on_messages_stream` or `on_messages`, and each of the two
may call the other. The outer call is the step.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from autogen_agentchat.base import ChatAgent, Response

from tracefork_autogen.causes import agent_step, causes_here
from tracefork_autogen.clients import ATTACHED
from tracefork_core.adapters import Patches, events_in, is_recorded_here, replace_in_classes

_working: ContextVar[object] = ContextVar("tracefork_autogen_working", default=None)
"""The agent that works here."""


def put_in(patches: Patches) -> None:
    """Put agents on the tape of the open session, as steps."""
    replace_in_classes(patches, ChatAgent, ["on_messages", "on_messages_stream"], _instead)


def _instead(_owner: type, name: str, original: Any) -> Any:
    return _as_stream(original) if name == "on_messages_stream" else _as_call(original)


def _as_call(on_messages: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(on_messages)
    async def answered(self: Any, messages: Any, cancellation_token: Any) -> Any:
        if not is_recorded_here() or _working.get() is self:
            return await on_messages(self, messages, cancellation_token)
        with agent_step(self.name, messages, _values(self)) as here:
            response = await on_messages(self, messages, cancellation_token)
        causes_here().spoke(response.chat_message, here)
        return response

    return answered


def _as_stream(on_messages_stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(on_messages_stream)
    def answered(self: Any, messages: Any, cancellation_token: Any) -> Any:
        events = on_messages_stream(self, messages, cancellation_token)
        if not is_recorded_here() or _working.get() is self:
            return events
        return _events_of(self, messages, events)

    return answered


async def _events_of(
    agent: Any, messages: Any, events: AsyncGenerator[Any, None]
) -> AsyncGenerator[Any, None]:
    causes = causes_here()
    running = causes.begin(agent.name, messages, _values(agent))
    async for event in events_in(running, events):
        if isinstance(event, Response):
            causes.spoke(event.chat_message, running.step)
        yield event


def _values(agent: Any) -> dict[ContextVar[Any], object]:
    return {_working: agent, **ATTACHED.around(agent)}
