"""Let a divergence through ADK, whose plugins turn errors into answers.

Errors of models and tools go to plugins first: `ReflectAndRetryToolPlugin` answers them, and others
wait. So the session's error is raised there. After that, the next event of the run raises it (see
`steps`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from google.adk.plugins.plugin_manager import PluginManager

from tracefork_core.adapters import Patches, check_session


def put_in(patches: Patches) -> None:
    """Raise the session's error where plugins would handle it."""
    for name in ("run_on_tool_error_callback", "run_on_model_error_callback"):
        patches.wrap(PluginManager, name, _raised)


def _raised(callback: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(callback)
    async def checked(self: Any, **options: Any) -> Any:
        check_session()
        return await callback(self, **options)

    return checked
