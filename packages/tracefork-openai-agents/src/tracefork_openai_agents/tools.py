"""Make the calls of function tools exchanges: recorded once, and answered from the tape in replays.

The SDK calls each function tool in one function, below approvals, guardrails, hooks and spans, and
above time limits and the texts that a model gets for an error. Only that function is replaced, so
all of the SDK's own code runs in a replay as in the recording.

Agents that serve as tools are left alone: their runs make exchanges of their own.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any

from agents import tool as agents_tool
from agents.exceptions import MCPToolCancellationError, ModelBehaviorError, UserError
from agents.run_internal import tool_execution

from tracefork_core.adapters import (
    Patches,
    atool_exchange,
    check_session,
    current_step,
    in_session,
    step,
    tool_mark,
)
from tracefork_openai_agents.steps import inside_tool, tool_step
from tracefork_openai_agents.tool_values import VALUES, Invoked

_INVOKE = "_invoke_function_tool_with_metadata"
_NOT_IN_NAMES = re.compile(r"^[^\w]|[^\w.:/-]")
_RAISED = (MCPToolCancellationError, ModelBehaviorError, UserError)
_ONLY = "(text)"
"""The name of arguments that are no JSON object."""


def put_in(patches: Patches) -> None:
    """Make the calls of function tools exchanges of the open session."""
    for module in (agents_tool, tool_execution):
        patches.wrap(module, _INVOKE, _as_exchange)


def name_on_tape(name: str) -> str:
    """Return the name of a tool with the characters that a tape accepts."""
    return _NOT_IN_NAMES.sub("_", name) or "_"


def _as_exchange(invoke: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(invoke)
    async def invoked(*, function_tool: Any, context: Any, arguments: str) -> Any:
        if not in_session() or inside_tool.get():
            return await invoke(function_tool=function_tool, context=context, arguments=arguments)
        with _step_of(function_tool.name):
            if function_tool._is_agent_tool:  # noqa: SLF001 - nothing public tells
                result = await invoke(
                    function_tool=function_tool, context=context, arguments=arguments
                )
                check_session()  # The SDK tells the model about errors of such a tool.
                return result
            return await _exchange(invoke, function_tool, context, arguments)

    return invoked


async def _exchange(
    invoke: Callable[..., Any], function_tool: Any, context: Any, arguments: str
) -> Any:
    told = _decoded(arguments)
    function = getattr(function_tool, "__wrapped__", None)

    async def run(**now: Any) -> object:
        text = arguments if now == told else _encoded(now)
        token = inside_tool.set(True)
        try:
            result = await invoke(function_tool=function_tool, context=context, arguments=text)
        finally:
            inside_tool.reset(token)
        if result.is_sdk_generated_error:
            return result
        return _kept(result.output, function)

    mark = tool_mark(function)
    result = await atool_exchange(
        name_on_tape(function_tool.name),
        told,
        run,
        VALUES,
        effect=mark.effect if mark else None,
        raises=(*_RAISED, *(mark.raises if mark else ())),
        returns=function,
    )
    return result if isinstance(result, Invoked) else Invoked(result)


def _kept(output: object, function: Any) -> object:
    """Return an output, or the text that the model gets for one that no replay could rebuild."""
    annotations = getattr(inspect.unwrap(function), "__annotations__", {}) if function else {}
    return output if "return" in annotations or VALUES.hold(output) else str(output)


def _decoded(arguments: str) -> dict[str, Any]:
    try:
        decoded = json.loads(arguments) if arguments else {}
    except ValueError:
        decoded = arguments
    return decoded if isinstance(decoded, dict) else {_ONLY: decoded}


def _encoded(arguments: dict[str, Any]) -> str:
    only = arguments.get(_ONLY)
    return only if list(arguments) == [_ONLY] and isinstance(only, str) else json.dumps(arguments)


def _step_of(name: str) -> AbstractContextManager[None]:
    """Return a step for a tool that has no span: a run without tracing makes none for some."""
    here = current_step.get()
    return nullcontext() if here is not None and here == tool_step.get() else step("tool", name)
