"""Note what a tool did besides returning a result, and do it again in a replay.

A tool with a context may write to the state of the agent's session, and it may ask the user for
something by an exception. Both are a part of the outcome of its call.

What it adds to the tools of the run cannot be noted: these are functions. A warning says so.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent_framework.exceptions import UserInputRequiredException

from tracefork_core import ToolError


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call that did more than return a result.

    `error` is the class and the message of the exception that it raised, and `asks` what it wants
    to know from the user.
    """

    result: object = None
    state: dict[str, object] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    error: tuple[str, str] | None = None
    asks: list[object] | None = None

    def do_again(self, context: Any) -> None:
        """Do to the session of a call what the recorded one did."""
        state = _state(context)
        if state is not None:
            state.update(self.state)
            for name in self.removed:
                state.pop(name, None)

    def given(self) -> object:
        """Return or raise what the call did."""
        if self.asks is not None:
            raise UserInputRequiredException(self.asks, *(self.error or ("", ""))[1:])
        if self.error is not None:
            raise _rebuilt(*self.error)
        return self.result


class Before:
    """The state of the session, and the tools of the run, before a call."""

    def __init__(self, context: Any, as_json: Callable[[object], Any]) -> None:
        self._context = context
        self._as_json = as_json
        self._state = self._noted()
        self._tools = _tools(context)

    def changed(self) -> dict[str, object]:
        """Return the entries of the session's state that differ now."""
        now = self._noted()
        state = _state(self._context) or {}
        return {name: state[name] for name in now if self._state.get(name) != now[name]}

    def removed(self) -> list[str]:
        """Return the names of the entries that are gone."""
        now = self._noted()
        return [name for name in self._state if name not in now]

    def warn(self, name: str) -> None:
        """Warn of a tool that changed the tools of the run, as its replay will not."""
        if _tools(self._context) != self._tools:
            warnings.warn(
                f"tracefork: the tool {name} changed the tools of the run. A replay does not run "
                "it, so the next request differs: mark it with "
                "tracefork_agent_framework.leave_live(tool).",
                stacklevel=2,
            )

    def _noted(self) -> dict[str, Any]:
        state = _state(self._context) or {}
        return {name: [self._as_json(value)] for name, value in state.items()}


def _state(context: Any) -> dict[str, Any] | None:
    return getattr(getattr(context, "session", None), "state", None)


def _tools(context: Any) -> list[Any]:
    return list(getattr(context, "tools", None) or ())


def _rebuilt(kind: str, message: str) -> Exception:
    known = getattr(builtins, kind, None)
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            return known(message)
        except Exception:  # noqa: BLE001 - it cannot be built from a message alone
            return ToolError(kind, message)
    return ToolError(kind, message)
