"""Say which tools of MCP servers only read.

A server may say so itself (`readOnlyHint`), but that is a hint: the specification forbids to rely
on it unless the server is trusted. So a fork takes every tool for a write that the user has not
declared.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

from tracefork_core import UsageError
from tracefork_core.adapters import Effect, effect_of

HINT = "hint"
_declared: dict[str, str] = {}


def declare(tools: str, effect: Effect | Literal["hint"]) -> None:
    """Declare the side effect of tools of MCP servers, for every session of this process.

    The last declaration that fits a tool counts. `tracefork fork --reads github/get_issue` declares
    a tool for one fork.

    Args:
        tools: "github/get_issue", or a pattern: "github/get_*", "files/*".
        effect: "read" or "pure" if a fork may call them again; "write" if it must not; "hint" to
            believe what the server says of each (`readOnlyHint`).

    Raises:
        UsageError: the pattern names no server, or the effect is invalid.
    """
    if "/" not in tools:
        raise UsageError(
            f"tracefork: {tools!r} names no tool. Give the server and the tool: 'github/get_issue'."
        )
    if effect != HINT:
        effect_of(tools, effect)
    _declared.pop(tools, None)
    _declared[tools] = effect


def effect_of_tool(server: str, tool: str, hint: bool | None) -> Effect | None:
    """Return the side effect of a tool; None if it is unknown. `hint` is the server's own."""
    name = f"{server}/{tool}"
    declared = next(
        (effect for tools, effect in reversed(_declared.items()) if fnmatchcase(name, tools)), None
    )
    if declared == HINT:
        declared = "read" if hint else None
    return effect_of(name, declared, "write" if hint is False else None)
