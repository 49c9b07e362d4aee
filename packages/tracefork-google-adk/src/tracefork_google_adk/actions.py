"""Note what a tool did besides returning a result, and do it again in a replay.

A tool gets a context, through which it writes state, saves artifacts, escalates, transfers to an
agent, or asks for a confirmation. ADK collects that in the actions of the context, whether the tool
returns or raises. So the difference that a call made to the actions is a part of its outcome.

Artifacts in memory are a part of it, too. Those in files and buckets outlive the run, so a replay
leaves them alone.
"""

from __future__ import annotations

from typing import Any

from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event_actions import EventActions

from tracefork_core.adapters import Changes
from tracefork_google_adk.values import Values

_STATE = "state_delta"
_ARTIFACTS = "artifact_delta"
_ID = "$call"
"""Stands for the id of the call in the keys of the actions: it differs from run to run."""


class Actions(Changes):
    """What one call does through its context."""

    def __init__(self, context: Any, values: Values) -> None:
        self._context = context
        self._values = values
        self._state = dict(context.actions.state_delta)
        self._others = _others(context.actions)

    async def made(self) -> object:
        """Return what the call did; None if that is nothing."""
        state, actions = self._written(), self._done()
        if not (state or actions):
            return None
        artifacts = await _saved_artifacts(self._context, actions)
        return {"state": state, "actions": actions, "artifacts": artifacts}

    async def make_again(self, made: Any) -> None:
        """Do to the context of a call what the recorded one did."""
        context, actions = self._context, made["actions"]
        for filename, artifact in made["artifacts"].items():
            await context.save_artifact(filename, artifact)
        for name, value in made["state"].items():
            context.state[name] = value
        told = EventActions.model_validate(_renamed(actions, _ID, context.function_call_id))
        for name in actions:
            now, value = getattr(context.actions, name), getattr(told, name)
            if isinstance(now, dict) and isinstance(value, dict):
                now.update(value)
            else:
                setattr(context.actions, name, value)

    def _written(self) -> dict[str, object]:
        """Return what was written to the state since."""
        now, before = self._context.actions.state_delta, self._state
        return {
            name: self._values.storable(value)
            for name, value in now.items()
            if name not in before or before[name] is not value
        }

    def _done(self) -> dict[str, object]:
        """Return the actions that differ now, as JSON; of those that are mappings, what is new."""
        differing = {}
        for name, value in _others(self._context.actions).items():
            before = self._others.get(name)
            if isinstance(value, dict) and isinstance(before, dict):
                new = {key: item for key, item in value.items() if before.get(key) != item}
                if new:
                    differing[name] = new
            elif value != before:
                differing[name] = value
        return _renamed(differing, self._context.function_call_id, _ID)


async def _saved_artifacts(context: Any, actions: dict[str, Any]) -> dict[str, object]:
    """Return the artifacts that a call saved in memory, by their names."""
    if not isinstance(context._invocation_context.artifact_service, InMemoryArtifactService):  # noqa: SLF001
        return {}
    saved = actions.get(_ARTIFACTS, {})
    return {name: await context.load_artifact(name, version) for name, version in saved.items()}


def _others(actions: EventActions) -> dict[str, Any]:
    return dict(actions.model_dump(mode="json", exclude={_STATE}, by_alias=False))


def _renamed(actions: dict[str, Any], before: str | None, after: str | None) -> dict[str, Any]:
    return {
        name: {after if key == before else key: item for key, item in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in actions.items()
    }
