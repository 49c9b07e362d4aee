"""Refuse live runs: a tape cannot hold them.

They exchange audio and text over a connection that stays open, in pieces that depend on when they
arrive. A run that is not live asks for such a connection, too, where its config says `support_cfc`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.runners import Runner

from tracefork_core import UsageError
from tracefork_core.adapters import Patches, in_session, replace_in_classes


def put_in(patches: Patches) -> None:
    """Refuse to run live, and to connect a model for that."""
    patches.wrap(Runner, "run_live", _refused)
    replace_in_classes(
        patches, BaseLlm, ["connect"], lambda _owner, _name, connect: _refused(connect)
    )


def _refused(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def begun(*args: Any, **options: Any) -> Any:
        if in_session():
            raise UsageError(
                "tracefork: cannot record Runner.run_live: what a live model sends over its open "
                "connection is not on the tape. Ask the same agents with Runner.run_async and "
                "their questions as text, or run them live outside of the session."
            )
        return original(*args, **options)

    return begun
