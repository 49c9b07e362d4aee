"""Stand in for the outputs of the latest kickoff, which `crewai replay` starts from.

Each kickoff of a project overwrites them. A replay or fork must not: its outputs stay in memory.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

from crewai.memory.storage.kickoff_task_outputs_storage import KickoffTaskOutputsSQLiteStorage
from crewai.utilities.crew_json_encoder import CrewJSONEncoder

from tracefork_core.adapters import Patches, State, put_in_front, undisturbed
from tracefork_crewai.reads import Reads

_NAMES = ("_initialize_db", "add", "update", "load", "delete_all")


def put_in(patches: Patches) -> None:
    """Put a stand-in in front of each storage of task outputs."""
    put_in_front(
        patches,
        KickoffTaskOutputsSQLiteStorage,
        _NAMES,
        TaskOutputs,
        kind="task outputs",
        same=_same,
    )


def _same(_: Any) -> Hashable:
    return "task outputs"  # The path may be the default one, which a replay does not look up.


class TaskOutputs:
    """The outputs of tasks, as one session sees them. `_rows` are those that it wrote itself."""

    def __init__(self, _: object, state: State) -> None:
        self._is_answered = state.is_answered
        self._reads = Reads(state, nothing=[])
        self._rows: list[dict[str, Any]] | None = None

    def _initialize_db(self, own: Any) -> None:
        self._write(own)

    def add(
        self,
        own: Any,
        task: Any,
        output: Any,
        task_index: int,
        was_replayed: bool = False,
        inputs: Any = None,
    ) -> None:
        """Store the output of a task."""
        self._write(own, task, output, task_index, was_replayed, inputs)
        row = {
            "task_id": str(task.id),
            "task_key": task.key,
            "expected_output": task.expected_output,
            "output": _data(output),
            "task_index": task_index,
            "inputs": _data(inputs or {}),
            "was_replayed": was_replayed,
            "timestamp": None,
        }
        others = [it for it in self._known() if it["task_id"] != row["task_id"]]
        self._rows = sorted([*others, row], key=lambda it: int(it["task_index"]))

    def update(self, own: Any, task_index: int, **fields: Any) -> None:
        """Replace the output of a task that is replayed."""
        self._write(own, task_index, **fields)
        self._rows = self._known()
        for row in self._rows:
            if row["task_index"] == task_index:
                row.update({name: _data(field) for name, field in fields.items()})

    def load(self, own: Any) -> Any:
        """Return the outputs of all tasks, in order."""
        if self._rows is None:
            return self._reads.read("latest", own)
        if self._is_answered:
            return _data(self._rows)
        with undisturbed():
            return own()

    def delete_all(self, own: Any) -> None:
        """Delete all outputs."""
        self._write(own)
        self._rows = []

    def _known(self) -> list[dict[str, Any]]:
        if self._rows is not None:
            return self._rows
        return self._reads.read("latest", list) if self._is_answered else []

    def _write(self, own: Any, *args: Any, **fields: Any) -> None:
        if not self._is_answered:
            with undisturbed():
                own(*args, **fields)


def _data(value: object) -> Any:
    return json.loads(json.dumps(value, cls=CrewJSONEncoder))
