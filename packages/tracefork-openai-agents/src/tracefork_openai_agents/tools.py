"""Make the calls of function tools exchanges: recorded once, and answered from the tape in replays.

The SDK calls each function tool in one function, below approvals, guardrails, hooks and spans, and
above time limits and the texts that a model gets for an error. Only that function is replaced, so
all of the SDK's own code runs in a replay as in the recording.

Left alone are agents that serve as tools, whose runs make exchanges of their own, and tools of MCP
servers, which tracefork-mcp records.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from agents import tool as agents_tool
from agents.run_internal import tool_execution
from agents.tool import ToolOriginType

from tracefork_core.adapters import Patches, answering_tape, in_session
from tracefork_openai_agents import misses
from tracefork_openai_agents.live_tools import Watch, policy_of
from tracefork_openai_agents.steps import inside_tool, step_of_tool
from tracefork_openai_agents.tool_calls import call, decoded, encoded
from tracefork_openai_agents.tool_values import VALUES, Invoked

_INVOKE = "_invoke_function_tool_with_metadata"


def put_in(patches: Patches) -> None:
    """Make the calls of function tools exchanges of the open session."""
    for module in (agents_tool, tool_execution):
        patches.wrap(module, _INVOKE, _as_exchange)


def _as_exchange(invoke: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(invoke)
    async def invoked(*, function_tool: Any, context: Any, arguments: str) -> Any:
        def work(arguments: str) -> Any:
            return invoke(function_tool=function_tool, context=context, arguments=arguments)

        if not in_session() or inside_tool.get():
            return await work(arguments)
        function = getattr(function_tool, "__wrapped__", None)
        policy = "rerun" if _makes_exchanges(function_tool) else policy_of(function_tool, function)
        if policy == "stub":
            return await _stubbed(work, function_tool, function, context, arguments)
        with step_of_tool(function_tool.name):
            result = await work(arguments)
            misses.check()  # The SDK tells the model about an error of the tool.
            if policy == "rerun":
                return result
            return await _compared(result, function_tool, function, arguments)

    return invoked


def _makes_exchanges(function_tool: Any) -> bool:
    origin = function_tool._tool_origin  # noqa: SLF001 - nothing public tells
    is_agent: bool = function_tool._is_agent_tool  # noqa: SLF001
    return is_agent or (origin is not None and origin.type is ToolOriginType.MCP)


async def _stubbed(
    work: Callable[[str], Any], function_tool: Any, function: Any, context: Any, arguments: str
) -> Any:
    told = decoded(arguments)

    async def run(**now: Any) -> object:
        watch = Watch(context) if answering_tape() is None else None
        result = await work(arguments if now == told else encoded(now))
        if watch is not None:
            watch.warn(function_tool.name)
        return result if result.is_sdk_generated_error else result.output

    result = await call(function_tool.name, told, run, function=function)
    return result if isinstance(result, Invoked) else Invoked(result)


async def _compared(invoked: Any, function_tool: Any, function: Any, arguments: str) -> Any:
    """Compare a result with the recorded one: it is an argument of the exchange that returns it."""
    result = invoked.output if VALUES.hold(invoked.output) else str(invoked.output)

    async def run(**_: Any) -> object:
        return invoked if invoked.is_sdk_generated_error else invoked.output

    told = {"arguments": decoded(arguments), "result": VALUES.encode(result)}
    compared = await call(function_tool.name, told, run, function=function)
    return compared if isinstance(compared, Invoked) else Invoked(compared)
