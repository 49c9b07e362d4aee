"""Make the calls of workbenches exchanges where no tool of AutoGen lies below them.

`StaticWorkbench` calls tools, which are exchanges themselves (see `tools`), and `McpWorkbench` a
server, which tracefork-mcp records. Another workbench does the work itself: its `call_tool` is the
exchange. Its connections are its own affair: it connects in `start`, in replays, too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from functools import wraps
from typing import Any

from autogen_core.tools import StaticWorkbench, TextResultContent, ToolResult, Workbench

from tracefork_autogen.exchanges import exchange, stream
from tracefork_autogen.live_tools import is_left_live
from tracefork_autogen.values import Rendered, Values
from tracefork_core.adapters import (
    Patches,
    RunningStep,
    events_in,
    is_recorded_here,
    replace_in_classes,
    step,
)

_running: ContextVar[object] = ContextVar("tracefork_autogen_workbench", default=None)
"""The workbench that works here: its class may call the class it derives from."""


def put_in(patches: Patches) -> None:
    """Make the calls of workbenches exchanges of the open session."""
    replace_in_classes(patches, Workbench, ["call_tool", "call_tool_stream"], _instead)


def _instead(owner: type, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    if issubclass(owner, StaticWorkbench):
        return original
    return _as_exchange(original) if name == "call_tool" else _streaming(original)


def _as_exchange(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(original)
    async def call_tool(
        self: Any,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *rest: Any,
        **options: Any,
    ) -> Any:
        if not is_recorded_here() or _running.get() is self:
            return await original(self, name, arguments, *rest, **options)

        async def work(**arguments: Any) -> object:
            return _plain(name, await original(self, name, arguments, *rest, **options))

        with step("tool", name):
            if not is_left_live(self):
                return _result(name, await exchange(name, arguments or {}, work, Values()))
            token = _running.set(self)
            try:
                return await original(self, name, arguments, *rest, **options)
            finally:
                _running.reset(token)

    return call_tool


def _streaming(
    original: Callable[..., AsyncGenerator[Any, None]],
) -> Callable[..., AsyncGenerator[Any, None]]:
    @wraps(original)
    async def call_tool_stream(
        self: Any,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *rest: Any,
        **options: Any,
    ) -> AsyncGenerator[Any, None]:
        async def work(**arguments: Any) -> AsyncGenerator[Any, None]:
            async with aclosing(original(self, name, arguments, *rest, **options)) as items:
                async for item in items:
                    yield _plain(name, item)

        if not is_recorded_here() or _running.get() is self:
            items = original(self, name, arguments, *rest, **options)
        elif is_left_live(self):
            items = original(self, name, arguments, *rest, **options)
            items = events_in(RunningStep.begin("tool", name, {_running: self}), items)
        else:
            items = stream(name, arguments or {}, work, Values())
            items = events_in(RunningStep.begin("tool", name), items)
        async with aclosing(items):
            async for item in items:
                yield _result(name, item)

    return call_tool_stream


def _plain(name: str, result: Any) -> object:
    """Return the text of a result that holds nothing else: tapes are read by people."""
    match result:
        case ToolResult(result=[TextResultContent(content=text)], is_error=False):
            return Rendered(text) if result.name == name else result
    return result


def _result(name: str, told: object) -> object:
    if type(told) is not Rendered:
        return told
    return ToolResult(name=name, result=[TextResultContent(content=str(told))])
