"""Note what a tool changes besides returning a result, and change it again in a replay.

A tool with a context may write to the state of the agent's session. What it adds to the tools of
the run cannot be noted: these are functions. A warning says so.
"""

from __future__ import annotations

import warnings
from typing import Any

from tracefork_agent_framework.values import Values
from tracefork_core.adapters import Changes, as_json


class OfSession(Changes):
    """What one call changes in the state of the session."""

    def __init__(self, tool: str, context: Any, values: Values) -> None:
        self._tool = tool
        self._context = context
        self._values = values
        self._before = self._noted()
        self._tools = _tools(context)

    async def made(self) -> object:
        """Return the entries that differ now, and the names of those that are gone."""
        self._warn()
        now, state = self._noted(), _state(self._context) or {}
        changed = {
            name: self._values.storable(state[name])
            for name in now
            if self._before.get(name) != now[name]
        }
        removed = [name for name in self._before if name not in now]
        return {"state": changed, "removed": removed} if changed or removed else None

    async def make_again(self, made: Any) -> None:
        """Do to the session of a call what the recorded one did."""
        if (state := _state(self._context)) is not None:
            state.update(made["state"])
            for name in made["removed"]:
                state.pop(name, None)

    def _warn(self) -> None:
        """Warn of a tool that changed the tools of the run, as its replay will not."""
        if _tools(self._context) != self._tools:
            warnings.warn(
                f"tracefork: the tool {self._tool} changed the tools of the run. A replay does not "
                "run it, so the next request differs: mark it with "
                "tracefork_agent_framework.leave_live(tool).",
                stacklevel=2,
            )

    def _noted(self) -> dict[str, Any]:
        state = _state(self._context) or {}
        return {name: [as_json(value)] for name, value in state.items()}


def _state(context: Any) -> dict[str, Any] | None:
    return getattr(getattr(context, "session", None), "state", None)


def _tools(context: Any) -> list[Any]:
    return list(getattr(context, "tools", None) or ())
