"""Refuse realtime sessions and voice pipelines: a tape cannot hold them.

Both exchange audio over connections that stay open, in pieces that depend on when they arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType
from typing import Any, NoReturn

from tracefork_core import UsageError
from tracefork_core.adapters import Patches, in_session


def put_in_realtime(patches: Patches, module: ModuleType) -> None:
    """Refuse to begin a realtime session."""
    for name in ("__aenter__", "enter"):
        patches.wrap(module.RealtimeSession, name, partial(_refused, "a RealtimeSession"))


def put_in_voice(patches: Patches, module: ModuleType) -> None:
    """Refuse to run a voice pipeline."""
    patches.wrap(module.VoicePipeline, "run", partial(_refused, "a VoicePipeline"))


def _refused(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def begun(*args: Any, **options: Any) -> Any:
        if in_session():
            _refuse(name)
        return await original(*args, **options)

    return begun


def _refuse(name: str) -> NoReturn:
    raise UsageError(
        f"tracefork: cannot record {name}: its audio is not on the tape. Record the agents behind "
        "it with Runner.run and their questions as text, or use it outside of the session."
    )
