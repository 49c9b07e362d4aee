"""Let a divergence through the framework, which tells models about the errors of tools.

Whatever a tool or its middleware raises becomes a text for the model. So the session's error is
raised where that text has been made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from agent_framework import _tools

from tracefork_core.adapters import Patches, check_session


def put_in(patches: Patches) -> None:
    """Raise the session's error where the framework has handled the error of a tool."""
    patches.wrap(_tools, "_auto_invoke_function", _checked)


def _checked(invoke: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(invoke)
    async def invoked(*args: Any, **options: Any) -> Any:
        result = await invoke(*args, **options)
        check_session()
        return result

    return invoked
