"""Let a divergence through Strands, which tells models about the errors of tools.

Strands turns an error of a tool into a result that the model reads, and its hooks may retry tools
and models for as long as they like. So the session's error is raised again before the hooks behind
a call run: outside of all that handles errors of tools and models. `steps` and `graphs` raise it in
place of the result of a run, because a swarm turns errors into a failed result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from strands.hooks import (
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeModelCallEvent,
    HookRegistry,
)
from strands.tools._caller import _ToolCaller

from tracefork_core.adapters import Patches, check_session

_AROUND_CALLS = (AfterModelCallEvent, AfterToolCallEvent, BeforeModelCallEvent)


def put_in(patches: Patches) -> None:
    """Raise the session's error around each call, and behind a tool that the program calls."""
    patches.wrap(HookRegistry, "invoke_callbacks_async", _check_first)
    patches.wrap(_ToolCaller, "__getattr__", _check_behind)


def _check_first(invoke: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(invoke)
    async def invoke_callbacks_async(self: Any, event: Any) -> Any:
        if isinstance(event, _AROUND_CALLS):
            check_session()
        return await invoke(self, event)

    return invoke_callbacks_async


def _check_behind(get: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(get)
    def got(self: Any, name: str) -> Any:
        call = get(self, name)

        @wraps(call)
        def caller(*args: Any, **options: Any) -> Any:
            try:
                return call(*args, **options)
            finally:
                check_session()

        return caller

    return got
