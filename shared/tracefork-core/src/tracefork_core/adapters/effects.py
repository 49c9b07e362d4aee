"""What side effect a tool has: what was declared, in the order of who knows it best."""

from __future__ import annotations

from typing import cast, get_args

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Effect
from tracefork_core.seams.tools.framework_tools import tool_mark

_EFFECTS = get_args(Effect)


def effect_of(tool: str, *declared: object, function: object = None) -> Effect | None:
    """Return the side effect of a tool; None if nothing says it, and then it may be a write.

    A "read" and a "pure" tool run again in a fork. A "write", and a tool of which nothing is known,
    does so only if that is allowed.

    Args:
        tool: the tool's name, for the error.
        declared: what the user declared, the declaration that counts most first; None is skipped.
        function: the function that does the work: `@tracefork.tool` on it counts last.

    Raises:
        UsageError: what was declared is not an effect.
    """
    said = next((value for value in declared if value is not None), None)
    if said is None:
        mark = tool_mark(function)
        return mark.effect if mark else None
    if said not in _EFFECTS:
        raise UsageError(
            f"tracefork: the effect of tool {tool} must be one of {', '.join(_EFFECTS)} "
            f"(got {said!r:.60})."
        )
    return cast(Effect, said)
