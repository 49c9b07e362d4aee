"""Make the calls of tools exchanges: recorded once, and answered from the tape in replays.

`FunctionTool.invoke` is the step of a call. It lies below middleware and approvals, and it checks
the arguments. From there it calls the function: that is the exchange. So all of the framework's own
work is done in a replay as in the recording, and so is the parsing of the result.

Later versions run a function that is no coroutine function in a thread. They do so below the
exchange, so a replay starts no thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from inspect import isawaitable
from typing import Any

from agent_framework import FunctionTool, MiddlewareTermination
from agent_framework.exceptions import ToolException

from tracefork_agent_framework.changes import OfSession
from tracefork_agent_framework.live_tools import is_left_live
from tracefork_agent_framework.places import executing
from tracefork_agent_framework.values import Values
from tracefork_core.adapters import (
    Patches,
    as_json,
    atool_exchange,
    check_session,
    in_session,
    own_branches,
    result_classes,
    step,
    take_lane,
    values_set,
)

_NOTHING: Any = object()
_RAISED = (ToolException, MiddlewareTermination)
"""What the framework offers to tools, to be raised."""

_calling: ContextVar[Call | None] = ContextVar("tracefork_maf_call", default=None)


def put_in(patches: Patches) -> None:
    """Make the calls of tools exchanges of the open session."""
    patches.wrap(FunctionTool, "invoke", _as_step)
    if hasattr(FunctionTool, "_invoke_function"):
        patches.wrap(FunctionTool, "_invoke_function", _as_exchange)
    else:  # Agent Framework 1.0 awaits what the tool itself returns.
        patches.wrap(FunctionTool, "__call__", _as_awaited_exchange)


def _as_step(invoke: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(invoke)
    async def invoked(self: Any, **options: Any) -> Any:
        if not in_session() or self.declaration_only:
            return await invoke(self, **options)
        take_lane(self.name)
        call = None if is_left_live(self) else Call(self)
        with step("tool", self.name, {**own_branches(), _calling: call, executing: None}):
            result = await invoke(self, **options)
            check_session()
            return result

    return invoked


def _as_exchange(invoke_function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(invoke_function)
    async def invoked(self: Any, arguments: Mapping[str, Any]) -> Any:
        call = _calling.get()
        if call is None or call.tool is not self or call.is_refused():
            return await invoke_function(self, arguments)
        return await call.answered(partial(invoke_function, self), arguments)

    return invoked


def _as_awaited_exchange(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(self: Any, *args: Any, **arguments: Any) -> Any:
        call = _calling.get()
        if call is None or call.tool is not self or args or call.is_refused():
            return function(self, *args, **arguments)

        async def invoke_function(arguments: Mapping[str, Any]) -> Any:
            result = function(self, **arguments)
            return await result if isawaitable(result) else result

        return call.answered(invoke_function, arguments)

    return called


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool by the framework."""

    tool: Any

    def is_refused(self) -> bool:
        """Return whether the tool refuses this call, because it was called too often."""
        calls, most = self.tool.invocation_count, self.tool.max_invocations
        errors, most_errors = (
            self.tool.invocation_exception_count,
            self.tool.max_invocation_exceptions,
        )
        return (most is not None and calls >= most) or (
            most_errors is not None and errors >= most_errors
        )

    async def answered(
        self,
        invoke_function: Callable[[Mapping[str, Any]], Awaitable[object]],
        arguments: Mapping[str, Any],
    ) -> object:
        """Return the result of the function, or the recorded one."""
        tool = self.tool
        given = dict(arguments)
        about: Any = given.pop(tool._context_parameter_name or "", None)  # noqa: SLF001
        context = {tool._context_parameter_name: about} if about is not None else {}  # noqa: SLF001
        compared = {name: as_json(value) for name, value in given.items()}
        values = Values(result_classes(below(tool)))
        has_run = False

        async def run(**asked: Any) -> object:
            nonlocal has_run
            has_run = True
            # A fork may change an argument. The others are objects, which JSON has lost.
            chosen = {
                name: given[name] if compared.get(name, _NOTHING) == value else value
                for name, value in asked.items()
            }
            with values_set({_calling: None}):
                result = await invoke_function({**chosen, **context})
            return result if callable(tool.result_parser) else values.storable(result)

        try:
            return await atool_exchange(
                tool.name,
                compared,
                run,
                values,
                raises=_RAISED,
                function=below(tool),
                changes=OfSession(tool.name, about, values),
            )
        except Exception:
            if not has_run:
                tool.invocation_exception_count += 1
            raise
        finally:
            if not has_run:
                tool.invocation_count += 1


def below(tool: Any) -> Any:
    """Return the function that does the work of a tool."""
    function = tool.func
    return function.func if isinstance(function, FunctionTool) else function
