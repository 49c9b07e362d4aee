"""Make steps of the tools that run at the provider: web search, code interpreter, MCP and others.

A model's answer holds their calls and results, so they are on the tape already, and no replay or
fork runs them. They only lack a step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from agents.run_internal import run_loop

from tracefork_core.adapters import Patches, begin_step, current_step, end_step, in_session

_KINDS = {
    "code_interpreter_call": "tool",
    "file_search_call": "retriever",
    "image_generation_call": "tool",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcp",
    "web_search_call": "tool",
}


def put_in(patches: Patches) -> None:
    """Make a step of each hosted tool in the answers of models."""
    patches.wrap(run_loop, "get_single_step_result_from_response", _with_steps)


def _with_steps(resolve: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(resolve)
    async def resolved(*, new_response: Any, **options: Any) -> Any:
        if in_session():
            for item in new_response.output:
                kind = _KINDS.get(getattr(item, "type", ""))
                if kind is not None:
                    step = begin_step(kind, _name_of(item), parent=current_step.get())
                    end_step(step, getattr(item, "error", None))
        return await resolve(new_response=new_response, **options)

    return resolved


def _name_of(item: Any) -> str:
    server, tool = getattr(item, "server_label", None), getattr(item, "name", None)
    if server is not None:
        return f"{server}.{tool}" if tool else str(server)
    return str(item.type).removesuffix("_call")
