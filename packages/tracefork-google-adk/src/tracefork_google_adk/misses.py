"""Let a divergence through ADK, whose plugins turn errors into answers and whose nodes try again.

Errors of models and tools go to plugins first, and `ReflectAndRetryToolPlugin` answers them. So the
session's error is raised there. The end of a run raises it too (see `steps`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from google.adk.plugins.plugin_manager import PluginManager
from google.adk.workflow._node_runner import NodeRunner

from tracefork_core import TraceforkError
from tracefork_core.adapters import Patches, check_session


def put_in(patches: Patches) -> None:
    """Raise the session's error where plugins and nodes handle errors."""
    for name in ("run_on_tool_error_callback", "run_on_model_error_callback"):
        patches.wrap(PluginManager, name, _raised)
    patches.wrap(NodeRunner, "_attempt_retry", _at_once)


def _raised(callback: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(callback)
    async def checked(self: Any, **options: Any) -> Any:
        check_session()
        return await callback(self, **options)

    return checked


def _at_once(attempt: Callable[..., Awaitable[bool]]) -> Callable[..., Awaitable[bool]]:
    @wraps(attempt)
    async def attempted(self: Any, *args: Any, **options: Any) -> bool:
        try:
            check_session()
        except TraceforkError:
            return False
        return await attempt(self, *args, **options)

    return attempted
