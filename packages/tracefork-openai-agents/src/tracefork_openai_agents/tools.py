"""Make the calls of function tools exchanges: recorded once, and answered from the tape in replays.

The SDK calls each function tool in one function, below approvals, guardrails, hooks and spans, and
above time limits and the texts that a model gets for an error. Only that function is replaced, so
all of the SDK's own code runs in a replay as in the recording.

Agents that serve as tools are left alone: their runs make exchanges of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from agents import tool as agents_tool
from agents.run_internal import tool_execution

from tracefork_core.adapters import Patches, check_session, in_session
from tracefork_openai_agents.steps import inside_tool, step_of_tool
from tracefork_openai_agents.tool_calls import call
from tracefork_openai_agents.tool_values import Invoked

_INVOKE = "_invoke_function_tool_with_metadata"
_TEXT = "(text)"
"""The name of arguments that are no JSON object."""


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
        if not function_tool._is_agent_tool:  # noqa: SLF001 - nothing public tells
            return await _exchange(work, function_tool, arguments)
        with step_of_tool(function_tool.name):
            result = await work(arguments)
        check_session()  # The SDK tells the model about an error of such a tool.
        return result

    return invoked


async def _exchange(work: Callable[[str], Any], function_tool: Any, arguments: str) -> Any:
    told = _decoded(arguments)

    async def run(**now: Any) -> object:
        result = await work(arguments if now == told else _encoded(now))
        return result if result.is_sdk_generated_error else result.output

    function = getattr(function_tool, "__wrapped__", None)
    result = await call(function_tool.name, told, run, function=function)
    return result if isinstance(result, Invoked) else Invoked(result)


def _decoded(arguments: str) -> dict[str, Any]:
    try:
        decoded = json.loads(arguments) if arguments else {}
    except ValueError:
        decoded = arguments
    return decoded if isinstance(decoded, dict) else {_TEXT: decoded}


def _encoded(arguments: dict[str, Any]) -> str:
    text = arguments.get(_TEXT)
    return text if isinstance(text, str) else json.dumps(arguments)
