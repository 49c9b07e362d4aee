"""Decide which tools run in replays too, so that each of their requests is on the tape."""

from __future__ import annotations

from typing import Any, TypeVar

from crewai.tools import BaseTool

from tracefork_core import UsageError
from tracefork_core.adapters import tool_mark

T = TypeVar("T")

_MARK = "__tracefork_live__"
_OF_CREWAI = (
    "crewai.tools.agent_tools",  # They run agents.
    "crewai.tools.memory_tools",  # The memory records its own exchanges.
    "crewai.tools.cache_tools",
    "crewai.skills",
    "crewai.utilities",
)


def leave_live(tool: T) -> T:
    """Let a tool run in replays too, such as one that calls models or runs a crew; return it.

    Each of its requests is then an exchange of its own, which you can blame. `tool` is a function
    (below CrewAI's `@tool`), a class of tools or a tool.

    Raises:
        UsageError: `tool` is neither callable nor a tool, or cannot be marked.
    """
    if isinstance(tool, BaseTool):
        object.__setattr__(tool, "__pydantic_private__", {**_private(tool), _MARK: True})
    elif callable(tool):
        try:
            setattr(tool, _MARK, True)
        except AttributeError:
            raise UsageError(
                f"tracefork: {tool!r} cannot be marked. Mark a function that calls it instead."
            ) from None
    else:
        raise UsageError(f"tracefork: {tool!r:.60} is neither a tool nor a function.")
    return tool


def is_live(tool: object, body: Any) -> bool:
    """Return whether a tool runs in replays: CrewAI's own, a marked one, or `@tracefork.tool`."""
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
