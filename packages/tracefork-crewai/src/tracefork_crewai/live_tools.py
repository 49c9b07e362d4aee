"""Which tools run in replays too: what they ask is on the tape one by one."""

from __future__ import annotations

from typing import Any, TypeVar

from crewai.tools import BaseTool

from tracefork_core import UsageError
from tracefork_core.adapters import tool_mark

T = TypeVar("T")

_MARK = "__tracefork_live__"
_OF_CREWAI = (
    "crewai.tools.agent_tools",  # Agents answer them.
    "crewai.tools.memory_tools",  # Memory is on the tape by itself.
    "crewai.tools.cache_tools",
    "crewai.skills",
    "crewai.utilities",
)


def leave_live(tool: T) -> T:
    """Let a tool run in replays too, as one that asks models or runs a crew; return it.

    What it asks meanwhile is on the tape then, exchange by exchange, and can be blamed. For
    functions (below CrewAI's `@tool`), for classes of tools and for tools.

    Raises:
        UsageError: it is none of these.
    """
    if isinstance(tool, BaseTool):
        object.__setattr__(tool, "__pydantic_private__", {**_private(tool), _MARK: True})
    elif callable(tool):
        try:
            setattr(tool, _MARK, True)
        except AttributeError:
            raise UsageError(
                f"tracefork: {tool!r} cannot be marked. Mark the function that it calls."
            ) from None
    else:
        raise UsageError(f"tracefork: {tool!r:.60} is no tool and no function.")
    return tool


def is_live(tool: object, body: Any) -> bool:
    """Return whether a tool is left alone: CrewAI's own, one that says so, or `@tracefork.tool`."""
    kinds = type(tool).__mro__ if isinstance(tool, BaseTool) else ()
    places = [kind.__module__ for kind in kinds] + [getattr(body, "__module__", None) or ""]
    if any(place == own or place.startswith(f"{own}.") for place in places for own in _OF_CREWAI):
        return True
    if isinstance(tool, BaseTool) and _private(tool).get(_MARK):
        return True
    return (
        any(_MARK in vars(kind) for kind in kinds) or hasattr(body, _MARK) or bool(tool_mark(body))
    )


def _private(tool: BaseTool) -> dict[str, Any]:
    return tool.__pydantic_private__ or {}
