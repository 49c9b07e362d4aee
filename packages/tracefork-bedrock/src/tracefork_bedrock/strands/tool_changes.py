"""Note what a tool changes besides its result, and do it again in a replay.

A tool may write to the state of its agent, cancel it, and put values into the state of the run that
it shares with the program. A replay does not run the tool, and later prompts, conditions of edges
and the program itself read these. Writes to the agent's state are noted as they happen, so each
tool of several at once has its own; the state of the run is a dictionary, and is compared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from strands import Agent
from strands.agent.state import AgentState

from tracefork_bedrock.strands.tool_values import VALUES
from tracefork_core.adapters import Changes, Patches

_OF_STRANDS = frozenset({"agent", "model", "messages", "system_prompt", "tool_config"})
_MISSING = object()


class OfAgent(Changes):
    """What one call changes in its agent, and in the state of the run."""

    def __init__(self, agent: Any, run: dict[str, Any]) -> None:
        self.agent = agent
        self._run = run
        self._noted: list[Any] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what the block does to the agent and to the state of the run."""
        self._before = copy.deepcopy(self._of_run())
        token = _changes.set(self)
        try:
            yield
        finally:
            _changes.reset(token)

    def note(self, *change: Any) -> None:
        """Note a change of the agent."""
        self._noted.append(list(change))

    async def made(self) -> object:
        """Return all changes as plain data."""
        now = self._of_run()
        given = [
            ["run", key, copy.deepcopy(value)]
            for key, value in now.items()
            if key not in self._before or self._before[key] != value
        ]
        return [*self._noted, *given]

    async def make_again(self, made: Any) -> None:
        """Make recorded changes again."""
        for name, *given in made:
            if name == "run":
                _put(self._run, *given)
            elif name == "cancel":
                self.agent.cancel(**given[0])
            else:
                getattr(self.agent.state, name)(*given)

    def _of_run(self) -> dict[str, Any]:
        return {
            key: value
            for key, value in self._run.items()
            if key not in _OF_STRANDS and not key.startswith("event_loop_") and VALUES.hold(value)
        }


_changes: ContextVar[OfAgent | None] = ContextVar("tracefork_strands_changes", default=None)


def put_in(patches: Patches) -> None:
    """Note what tools do to agents."""
    for name in ("set", "delete"):
        patches.wrap(AgentState, name, partial(_noting, name, lambda agent: agent.state))
    if hasattr(Agent, "cancel"):
        patches.wrap(Agent, "cancel", partial(_noting, "cancel", lambda agent: agent))


def _put(run: dict[str, Any], key: str, value: Any) -> None:
    """Set a value; one that the program holds, too, is changed in place."""
    before = run.get(key, _MISSING)
    if type(before) is type(value) is list:
        before[:] = value
    elif type(before) is type(value) is dict:
        before.clear()
        before.update(value)
    else:
        run[key] = value


def _noting(
    name: str, of_agent: Callable[[Any], Any], method: Callable[..., Any]
) -> Callable[..., Any]:
    @wraps(method)
    def called(self: Any, *args: Any, **options: Any) -> Any:
        result = method(self, *args, **options)
        changes = _changes.get()
        if changes is not None and changes.agent is not None and of_agent(changes.agent) is self:
            changes.note(name, *([options] if name == "cancel" else [*args, *options.values()]))
        return result

    return called
