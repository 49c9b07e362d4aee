"""Decide which tools run in replays too: those that change the run's context, or run agents.

A replay answers a tool from the tape, so the tool does not change the context that the program gave
the run (`context=`). If instructions or other tools read that context, their next request differs.
"""

from __future__ import annotations

import pickle
import warnings
from typing import Any, Literal, TypeVar

from agents import FunctionTool

from tracefork_core import UsageError

T = TypeVar("T")
Policy = Literal["stub", "rerun", "compare"]

_MARK = "_tracefork_policy"


def leave_live(tool: T, *, compare: bool = False) -> T:
    """Let a function tool run in replays too, and return it.

    Use it for a tool that changes the run's context, or runs agents. What the tool asks and reads
    is then on the tape as if the program itself did it, so each of its requests is an exchange.

    Args:
        tool: what `@function_tool` made, or the function below it.
        compare: record the result as well. A replay then diverges if the tool returns another one,
            and a fork can change it.

    Raises:
        UsageError: it is neither a function tool nor a function.
    """
    if not isinstance(tool, FunctionTool) and not callable(tool):
        raise UsageError(f"tracefork: {tool!r:.60} is neither a function tool nor a function.")
    setattr(tool, _MARK, "compare" if compare else "rerun")
    return tool


def policy_of(tool: Any, function: Any) -> Policy:
    """Return what happens to a tool in a replay; `function` is the one below it, if known."""
    found: Policy = getattr(tool, _MARK, getattr(function, _MARK, "stub"))
    return found


class Watch:
    """Tells whether the run's context changed while a tool ran."""

    def __init__(self, context: Any) -> None:
        self._context = getattr(context, "context", None)
        self._before = self._state()

    def warn(self, name: str) -> None:
        """Warn of a tool that seems to have changed the context, as its replay will not."""
        if self._before is not None and self._state() != self._before:
            warnings.warn(
                f"tracefork: the tool {name} changed the run's context. A replay does not run it, "
                "so a later prompt may differ: mark it with "
                "tracefork_openai_agents.leave_live(tool, compare=True).",
                stacklevel=2,
            )

    def _state(self) -> bytes | None:
        if self._context is None:
            return None
        try:
            return pickle.dumps(self._context)
        except Exception:  # noqa: BLE001 - a class of the user's may raise anything
            return None
