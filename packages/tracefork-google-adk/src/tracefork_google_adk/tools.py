"""Make the calls of tools exchanges: recorded once, and answered from the tape in replays.

`BaseTool.run_async` does the work of each tool. It lies below ADK's callbacks, plugins and
confirmations and below the answers to errors, so all of these run in a replay as in the recording.
It is replaced in each class that defines it, also in those that the program defines later.

ADK runs each call in a task of its own, in the context of another task that has ended. So the lane
of the call is named here, after its tool and the number of the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from google.adk.flows.llm_flows.tools import _batch_executor
from google.adk.tools.base_tool import BaseTool

from tracefork_core.adapters import (
    Lane,
    Patches,
    atool_exchange,
    branch_lane,
    check_session,
    in_session,
    is_recorded_here,
    lane_here,
    numbered,
    own_branches,
    replace_in_classes,
    result_classes,
    step,
)
from tracefork_google_adk.actions import Actions
from tracefork_google_adk.live_tools import is_left_live, only_steers
from tracefork_google_adk.steps import steps_of_nodes
from tracefork_google_adk.values import Values


def put_in(patches: Patches) -> None:
    """Make the calls of tools exchanges of the open session."""
    replace_in_classes(patches, BaseTool, ["run_async"], _as_exchange)
    patches.wrap(_batch_executor, "_start_execute_task", _on_own_lane)


def _on_own_lane(start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def started(prepared_call: Any, coro: Any) -> Any:
        if not in_session():
            return start(prepared_call, coro)
        name = numbered(prepared_call.tool.name)
        return start(prepared_call, _branched(lane_here(), name, coro))

    return started


async def _branched(origin: Lane | None, name: str, work: Awaitable[Any]) -> Any:
    branch_lane(origin, name)
    return await work


def _as_exchange(
    owner: type, name: str, original: Callable[..., Awaitable[object]]
) -> Callable[..., Awaitable[object]]:
    @wraps(original)
    async def run_async(self: Any, *, args: dict[str, Any], tool_context: Any) -> object:
        async def work(**arguments: Any) -> object:
            return await original(self, args=arguments, tool_context=tool_context)

        if not is_recorded_here():
            return await work(**args)

        kind, named = _step_of(self, args)
        with step(kind, named, {**own_branches(), steps_of_nodes: None}):
            if not is_left_live(self):
                return await _answered(self, args, tool_context, work)
            result = await work(**args)
            check_session()  # Some tools return a text about an error.
            return result

    return run_async


def _step_of(tool: Any, arguments: dict[str, Any]) -> tuple[str, str]:
    if tool.name == "transfer_to_agent":
        return "handoff", str(arguments.get("agent_name") or tool.name)
    return "tool", str(tool.name)


async def _answered(
    tool: Any, arguments: dict[str, Any], context: Any, work: Callable[..., Awaitable[object]]
) -> object:
    function = getattr(tool, "func", None)
    values = Values(result_classes(function))

    async def run(**arguments: Any) -> object:
        return values.storable(await work(**arguments))

    return await atool_exchange(
        tool.name,
        arguments,
        run,
        values,
        effect="pure" if only_steers(tool) else None,
        function=function,
        changes=Actions(context, values),
    )
