"""Make steps of the agents of autogen-agentchat.

Whoever runs an agent, a team or a program, calls `on_messages_stream` or `on_messages`, and the one
may call the other. The outer call is the step.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from autogen_agentchat.base import ChatAgent

from tracefork_core.adapters import (
    Patches,
    RunningStep,
    events_in,
    in_session,
    replace_in_classes,
    step,
    values_set,
)

_working: ContextVar[object] = ContextVar("tracefork_autogen_working", default=None)
"""The agent that works here."""


def put_in(patches: Patches) -> None:
    """Put agents on the tape of the open session, as steps."""
    replace_in_classes(patches, ChatAgent, ["on_messages", "on_messages_stream"], _instead)


def _instead(_owner: type, name: str, original: Any) -> Any:
    return _as_stream(original) if name == "on_messages_stream" else _as_call(original)


def _as_call(on_messages: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(on_messages)
    async def answered(self: Any, *args: Any, **options: Any) -> Any:
        if not in_session() or _working.get() is self:
            return await on_messages(self, *args, **options)
        with step("agent", self.name), values_set({_working: self}):
            return await on_messages(self, *args, **options)

    return answered


def _as_stream(on_messages_stream: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(on_messages_stream)
    def answered(self: Any, *args: Any, **options: Any) -> Any:
        events = on_messages_stream(self, *args, **options)
        if not in_session() or _working.get() is self:
            return events
        return _events_of(self, events)

    return answered


async def _events_of(agent: Any, events: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    running = RunningStep.begin("agent", agent.name)
    async for event in events_in(running, events, {_working: agent}):
        yield event
