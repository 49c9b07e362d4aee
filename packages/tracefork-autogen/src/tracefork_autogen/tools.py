"""Make the calls of tools exchanges: recorded once, and answered from the tape in replays.

`BaseTool.run_json` does the work of each tool, and `run_json_stream` that of tools that yield.
They lie below the workbenches of agentchat, and programs of autogen-core call them directly. They
are replaced in each class that defines them, also in those that the program defines later.

A synchronous function runs in a thread of a pool, to which AutoGen gives no context. Here it gets
the context of its call, so that what it asks belongs to the step of the call.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, aclosing
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from typing import Any

from autogen_core.tools import BaseStreamTool, BaseTool, FunctionTool

from tracefork_autogen.exchanges import exchange, stream
from tracefork_autogen.live_tools import function_of, handoff_target, is_left_live
from tracefork_autogen.values import Rendered, Values
from tracefork_core.adapters import (
    Patches,
    RunningStep,
    as_json,
    check_session,
    classes_in,
    events_in,
    in_session,
    is_recorded_here,
    replace_in_classes,
    step,
)

_running: ContextVar[object] = ContextVar("tracefork_autogen_tool", default=None)
"""The arguments of the call that runs here: a tool's class may call the class it derives from."""


def put_in(patches: Patches) -> None:
    """Make the calls of tools exchanges of the open session."""
    replace_in_classes(patches, BaseTool, ["run_json", "return_value_as_string"], _instead)
    replace_in_classes(patches, BaseStreamTool, ["run_json_stream"], _streaming)
    patches.wrap(FunctionTool, "run", _with_context)


def _instead(owner: type, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    return _as_exchange(original) if name == "run_json" else _as_text(original)


def _as_text(original: Callable[..., str]) -> Callable[..., str]:
    @wraps(original)
    def return_value_as_string(self: Any, value: Any) -> str:
        return str(value) if type(value) is Rendered else original(self, value)

    return return_value_as_string


def _as_exchange(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(original)
    async def run_json(self: Any, args: Mapping[str, Any], *rest: Any, **options: Any) -> Any:
        if not is_recorded_here() or _running.get() is args:
            return await original(self, args, *rest, **options)

        told = as_json(dict(args))

        async def work(**now: Any) -> object:
            given = args if now == told else now  # A fork may change some.
            return _storable(self, await original(self, given, *rest, **options))

        with _step_of(self):
            if not is_left_live(self):
                return await exchange(self.name, told, work, _values_of(self), **_told(self))
            token = _running.set(args)
            try:
                result = await original(self, args, *rest, **options)
            finally:
                _running.reset(token)
            check_session()  # Some tools return a text about an error.
            return result

    return run_json


def _streaming(
    owner: type, name: str, original: Callable[..., AsyncGenerator[Any, None]]
) -> Callable[..., AsyncGenerator[Any, None]]:
    @wraps(original)
    async def run_json_stream(
        self: Any, args: Mapping[str, Any], *rest: Any, **options: Any
    ) -> AsyncGenerator[Any, None]:
        told = as_json(dict(args))

        async def work(**now: Any) -> AsyncGenerator[Any, None]:
            given = args if now == told else now
            async with aclosing(original(self, given, *rest, **options)) as items:
                async for item in items:
                    yield _storable(self, item)

        if not is_recorded_here() or _running.get() is args:
            items = original(self, args, *rest, **options)
        elif is_left_live(self):
            items = original(self, args, *rest, **options)
            items = events_in(RunningStep.begin("tool", self.name, {_running: args}), items)
        else:
            items = stream(self.name, told, work, _values_of(self), **_told(self))
            items = events_in(RunningStep.begin("tool", self.name), items)
        async with aclosing(items):
            async for item in items:
                yield item

    return run_json_stream


def _with_context(run: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(run)
    async def with_context(self: Any, args: Any, cancellation_token: Any) -> Any:
        function = function_of(self)
        if not in_session() or function is None or asyncio.iscoroutinefunction(function):
            return await run(self, args, cancellation_token)
        tool = copy.copy(self)
        tool._func = partial(copy_context().run, function)  # noqa: SLF001
        return await run(tool, args, cancellation_token)

    return with_context


def _step_of(tool: Any) -> AbstractContextManager[None]:
    target = handoff_target(tool)
    return step("tool", tool.name) if target is None else step("handoff", target)


def _values_of(tool: Any) -> Values:
    return Values(classes_in(tool.return_type()))


def _told(tool: Any) -> dict[str, Any]:
    is_handoff = handoff_target(tool) is not None
    return {"effect": "pure" if is_handoff else None, "function": function_of(tool)}


def _storable(tool: Any, result: Any) -> object:
    """Return a result that a replay can rebuild: itself, or what the model gets for it."""
    return (
        result if _values_of(tool).hold(result) else Rendered(tool.return_value_as_string(result))
    )
