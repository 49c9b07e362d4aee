"""Stand in for the storages of flows' states: `@persist`, and flows that wait for feedback.

A state that an earlier run left is read from the tape in replays and forks. The states that this
run saves stay in memory there, and its own reads find them.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.persistence.base import FlowPersistence
from pydantic import TypeAdapter

from tracefork_core.adapters import Patches, State, put_in_front, undisturbed
from tracefork_crewai.reads import Reads

_NAMES = (
    *("init_db", "save_state", "load_state"),
    *("save_pending_feedback", "load_pending_feedback", "clear_pending_feedback"),
)

_ANY: TypeAdapter[Any] = TypeAdapter(Any)


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each storage of flows' states."""
    put_in_front(patches, FlowPersistence, _NAMES, FlowStates, kind="flow states", same=_same)


def _same(persistence: Any) -> Hashable:
    """Return the class and the fields: each `@persist` has an object of its own."""
    return type(persistence).__qualname__, repr(persistence)


class FlowStates:
    """The states of flows, as one session sees them."""

    def __init__(self, _: object, state: State) -> None:
        self._is_answered = state.is_answered
        self._reads = Reads(state)
        self._states: dict[str, Any] = {}
        self._pending: dict[str, tuple[Any, Any] | None] = {}

    def init_db(self, own: Any) -> None:
        """Make the tables, but not in a replay or fork."""
        if not self._is_answered:
            with undisturbed():
                own()

    def save_state(self, own: Any, flow_uuid: str, method_name: str, state_data: Any) -> None:
        """Save a state."""
        self._states[flow_uuid] = self._saved(own, state_data, flow_uuid, method_name, state_data)

    def load_state(self, own: Any, flow_uuid: str) -> Any:
        """Return the last state of a flow."""
        if flow_uuid not in self._states:
            return self._reads.read(f"state {flow_uuid}", lambda: own(flow_uuid))
        if self._is_answered:
            return _copy(self._states[flow_uuid])
        with undisturbed():
            return own(flow_uuid)

    def save_pending_feedback(
        self, own: Any, flow_uuid: str, context: Any, state_data: Any
    ) -> None:
        """Save the state of a flow that waits for feedback."""
        saved = self._saved(own, state_data, flow_uuid, context, state_data)
        self._states[flow_uuid] = saved
        self._pending[flow_uuid] = saved, _copy(context.to_dict())

    def load_pending_feedback(self, own: Any, flow_uuid: str) -> Any:
        """Return the state of a waiting flow and what it waits for, or None."""

        def found() -> Any:
            pending = own(flow_uuid)
            return None if pending is None else (pending[0], _copy(pending[1].to_dict()))

        if flow_uuid not in self._pending:
            pending = self._reads.read(f"pending {flow_uuid}", found)
        elif self._is_answered:
            pending = _copy(self._pending[flow_uuid])
        else:
            with undisturbed():
                pending = found()
        return pending and (pending[0], PendingFeedbackContext.from_dict(pending[1]))

    def clear_pending_feedback(self, own: Any, flow_uuid: str) -> None:
        """Note that a flow waits no longer."""
        self._saved(own, None, flow_uuid)
        self._pending[flow_uuid] = None

    def _saved(self, own: Any, data: object, *args: Any) -> Any:
        """Save, but not in a replay or fork; return the data as it will be read again."""
        if self._is_answered:
            return _copy(data)
        with undisturbed():
            own(*args)
        return None


def _copy(data: object) -> Any:
    """Return a state as data, as it comes back from a database."""
    return json.loads(json.dumps(_ANY.dump_python(data, mode="json", fallback=str)))
