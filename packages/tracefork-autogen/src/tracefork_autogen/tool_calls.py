"""Keep agents of agentchat from hanging, and name the lanes of the calls that they make at once.

`AssistantAgent` reads a queue that the task of its tool calls fills. An exception in there fills
nothing: the agent waits for ever, and so does its team. AutoGen's workbenches answer with a result
that is an error, so a divergence gets one, too. The session has failed by then, and the agent's
next event raises that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Coroutine
from contextvars import ContextVar
from functools import wraps
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import FunctionExecutionResult

from tracefork_core import TraceforkError
from tracefork_core.adapters import (
    Lane,
    Patches,
    branch_lane,
    checked_events,
    in_session,
    lane_here,
    replace_in_classes,
)

_calls: ContextVar[tuple[object, Counter[str]] | None] = ContextVar(
    "tracefork_autogen_calls", default=None
)
"""How often each tool was called at once; the queue tells which calls belong together."""


def put_in(patches: Patches) -> None:
    """Answer a divergence as a tool's error is answered, and name the lanes of calls."""
    names = ["_execute_tool_call", "_process_model_result"]
    replace_in_classes(patches, AssistantAgent, names, _instead)


def _instead(owner: type, name: str, original: Any) -> Any:
    return (_answering if name == "_execute_tool_call" else _checked)(original)


def _answering(execute: Any) -> Any:
    @wraps(execute)
    def started(*, tool_call: Any, stream: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        work: Coroutine[Any, Any, Any] = execute(tool_call=tool_call, stream=stream, **options)
        if not in_session():
            return work
        here = _calls.get()
        if here is None or here[0] is not stream:
            here = (stream, Counter())
            _calls.set(here)
        here[1][tool_call.name] += 1
        name = f"{tool_call.name}.{here[1][tool_call.name]}"
        return _answered(work, tool_call, lane_here(), name)

    return staticmethod(started)


async def _answered(work: Any, tool_call: Any, origin: Lane | None, name: str) -> Any:
    branch_lane(origin, name)
    try:
        return await work
    except TraceforkError as error:
        failed = FunctionExecutionResult(
            content=str(error), call_id=tool_call.id, is_error=True, name=tool_call.name
        )
        return tool_call, failed


def _checked(process: Any) -> Any:
    def checked(cls: Any, /, **options: Any) -> AsyncGenerator[Any, None]:
        return checked_events(process.__func__(cls, **options))

    return classmethod(wraps(process)(checked))
