"""Make one call of a tool an exchange, whatever kind of tool it is."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any

from agents.exceptions import MCPToolCancellationError, ModelBehaviorError, UserError

from tracefork_core import TraceforkError
from tracefork_core.adapters import Effect, atool_exchange
from tracefork_openai_agents import misses
from tracefork_openai_agents.steps import inside_tool, step_of_tool
from tracefork_openai_agents.tool_values import VALUES

_RAISED = (MCPToolCancellationError, ModelBehaviorError, UserError)
"""Errors of the SDK that it treats in other ways than errors of a tool."""
_TEXT = "(text)"
"""The name of arguments that are no JSON object."""


async def call(
    name: str,
    arguments: Mapping[str, object],
    run: Callable[..., Awaitable[object]],
    *,
    effect: Effect | None = None,
    function: Any = None,
    is_tool: bool = True,
) -> Any:
    """Return what `run` returns, or what it returned in the recording.

    A result that no replay could rebuild becomes the text that the model would get for it.
    `function` is the user's own: its annotation names the classes of results, and
    `@tracefork.tool` its side effect. Without `is_tool` the call belongs to the step around it.
    """

    async def work(**arguments: Any) -> object:
        token = inside_tool.set(True)
        try:
            result = await run(**arguments)
        finally:
            inside_tool.reset(token)
        return result if _is_annotated(function) or VALUES.hold(result) else str(result)

    with step_of_tool(name) if is_tool else nullcontext():
        try:
            return await atool_exchange(
                name,
                arguments,
                work,
                VALUES,
                effect=effect,
                raises=_RAISED,
                returns=function,
                function=function,
            )
        except TraceforkError:
            misses.check()
            raise


def _is_annotated(function: Any) -> bool:
    return "return" in getattr(inspect.unwrap(function), "__annotations__", {})


def decoded(arguments: str) -> dict[str, Any]:
    """Return the arguments of a model's call as an object."""
    try:
        found = json.loads(arguments) if arguments else {}
    except ValueError:
        found = arguments
    return found if isinstance(found, dict) else {_TEXT: found}


def encoded(arguments: dict[str, Any]) -> str:
    """Undo `decoded`."""
    text = arguments.get(_TEXT)
    return text if isinstance(text, str) else json.dumps(arguments)
