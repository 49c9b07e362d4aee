"""Make the calls of tools exchanges: recorded once, and answered from the tape in replays.

`call_tool` of a toolset does the work of a tool. It lies below validation, approval, hooks and
retries, so all of these run in a replay as in the recording. It is replaced in `FunctionToolset`
and in the toolsets of the program. Toolsets that pass calls on to others are left alone, also
those of the program: what they do around a call is the program's own code. So are toolsets of MCP
servers, whose calls tracefork-mcp records, unless the server is an object of the same process.

The step of a tool is around its hooks: what they ask belongs to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    ExternalToolset,
    FunctionToolset,
    WrapperToolset,
)

from tracefork_core.adapters import (
    Patches,
    Values,
    atool_exchange,
    effect_of,
    is_recorded_here,
    own_branches,
    replace_in_classes,
    session_checked,
    step,
)
from tracefork_pydantic_ai import live_tools, tool_changes
from tracefork_pydantic_ai.live_tools import is_left_live
from tracefork_pydantic_ai.steps import in_run
from tracefork_pydantic_ai.tool_changes import OfRun
from tracefork_pydantic_ai.tool_values import RAISED, ToolValues, plain

Work = Callable[[dict[str, Any]], Awaitable[object]]

_PASSING_ON = (CombinedToolset, ExternalToolset, WrapperToolset)
_MCP = ("pydantic_ai.mcp", "MCPToolset")
"""By name: importing it would import MCP."""
_IN_PROCESS = "FastMCPTransport"
"""What connects to a server that is an object of this process."""

_called: ContextVar[str | None] = ContextVar("tracefork_pydantic_ai_called", default=None)
"""The name by which the model called the tool: toolsets may add a prefix, or rename."""


def put_in(patches: Patches) -> None:
    """Make the calls of tools steps and exchanges of the open session."""
    patches.wrap(ToolManager, "execute_tool_call", _in_step)
    replace_in_classes(patches, AbstractToolset, ["call_tool"], _as_exchange)
    live_tools.put_in(patches)
    tool_changes.put_in(patches)


def _in_step(execute: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(execute)
    async def executed(self: Any, validated: Any, **options: Any) -> Any:
        is_run = validated.args_valid and getattr(validated, "deferral", None) is None
        if not is_recorded_here() or not is_run:
            return await execute(self, validated, **options)
        name = validated.call.tool_name
        values: Values = {**own_branches(), _called: name}
        # Hooks turn errors into results, and toolsets into retries.
        with in_run(validated.ctx), step("tool", name, values), session_checked():
            return await execute(self, validated, **options)

    return executed


def _as_exchange(
    owner: type, _: str, original: Callable[..., Awaitable[object]]
) -> Callable[..., Awaitable[object]]:
    is_mcp = any((kind.__module__, kind.__name__) == _MCP for kind in owner.__mro__)
    if not (is_mcp or _does_the_work(owner)):
        return original

    @wraps(original)
    async def call_tool(
        self: Any, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any
    ) -> object:
        async def work(arguments: dict[str, Any]) -> object:
            return await original(self, name, arguments, ctx, tool)

        if not is_recorded_here() or (is_mcp and not _is_in_process(self)):
            return await work(tool_args)
        defined = getattr(self, "tools", {}).get(getattr(tool, "original_name", name))
        function = getattr(defined, "function", None if is_mcp else self.call_tool)
        if is_left_live(self, defined, function, ctx.deps):
            return await work(tool_args)
        told = _called.get() or name
        return await _answered(told, function, ctx, tool, work, tool_args)

    return call_tool


def _does_the_work(owner: type) -> bool:
    """Return whether a class of toolsets calls tools itself."""
    if owner.__module__.partition(".")[0] == "pydantic_ai":
        return owner is FunctionToolset
    return not issubclass(owner, _PASSING_ON)


def _is_in_process(toolset: Any) -> bool:
    transport = getattr(getattr(toolset, "client", None), "transport", None)
    return any(kind.__name__ == _IN_PROCESS for kind in type(transport).__mro__)


async def _answered(
    name: str, function: Any, ctx: Any, tool: Any, work: Work, arguments: dict[str, Any]
) -> object:
    """Return or raise what the tool does, or did in the recording."""
    told, values = plain(arguments), ToolValues(function)

    async def run(**now: Any) -> object:
        # A fork may change arguments; the tool expects them validated.
        given = arguments if now == told else tool.args_validator.validate_python(now)
        return values.storable(await work(given))

    return await atool_exchange(
        name,
        told,
        run,
        values,
        effect=effect_of(name, (tool.tool_def.metadata or {}).get("effect")),
        raises=RAISED,
        function=function,
        changes=OfRun(name, ctx, values),
    )
