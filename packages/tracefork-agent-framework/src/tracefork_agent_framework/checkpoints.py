"""Keep a replay away from the checkpoints of workflows that are on disk, or in memory.

A session keeps what the run itself saves, and gives it to the run. While it records, the storage
saves it too. A tape notes which checkpoints the run found, by their ids.

The content of a checkpoint that is older than the run is not on the tape: the framework stores it
with pickle, which no tape may hold. A replay reads it from the storage, and changes nothing there.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

from agent_framework import FileCheckpointStorage, InMemoryCheckpointStorage

from tracefork_core.adapters import Patches, State, Stored, put_in_front, undisturbed

_METHODS = (
    *("save", "load", "delete"),
    *("list_checkpoints", "list_checkpoint_ids", "get_latest"),
)


def put_in(patches: Patches) -> None:
    """Put stand-ins in front of the storages of checkpoints."""
    for kind in (FileCheckpointStorage, InMemoryCheckpointStorage):
        put_in_front(patches, kind, _METHODS, Checkpoints, kind="checkpoints", same=_place)


def _place(storage: Any) -> str | None:
    folder = getattr(storage, "storage_path", None)
    return str(folder.resolve()) if folder is not None else None


class Checkpoints:
    """Stands in front of a storage of checkpoints in a session."""

    def __init__(self, storage: Any, state: State) -> None:
        self._storage = storage
        self._stored = Stored(state)
        self._ours: dict[str, Any] = {}

    async def save(self, own: Any, checkpoint: Any) -> str:
        """Save a checkpoint."""
        if not self._stored.is_answered:
            with undisturbed():
                await own(checkpoint)
        name: str = checkpoint.checkpoint_id
        self._ours[name] = deepcopy(checkpoint)
        return name

    async def load(self, own: Any, checkpoint_id: str) -> Any:
        """Return a checkpoint: one of this run's, or an older one."""
        if checkpoint_id in self._ours:
            return deepcopy(self._ours[checkpoint_id])
        with undisturbed():
            return await own(checkpoint_id)

    async def delete(self, own: Any, checkpoint_id: str) -> bool:
        """Delete a checkpoint, and return whether there was one."""
        ours = self._ours.pop(checkpoint_id, None) is not None
        delete = partial(own, checkpoint_id)
        deleted: bool = await self._stored.aread(f"delete {checkpoint_id}", delete, lambda: ours)
        return deleted

    async def list_checkpoints(self, own: Any, *, workflow_name: str) -> list[Any]:
        """Return the checkpoints of a workflow."""
        names = await self._names(workflow_name)
        return [await self._any(name) for name in names]

    async def list_checkpoint_ids(self, own: Any, *, workflow_name: str) -> list[str]:
        """Return the ids of the checkpoints of a workflow."""
        return await self._names(workflow_name)

    async def get_latest(self, own: Any, *, workflow_name: str) -> Any:
        """Return the latest checkpoint of a workflow, or None."""
        found = [await self._any(name) for name in await self._names(workflow_name)]
        return max(found, key=lambda it: it.timestamp, default=None)

    async def _names(self, workflow: str) -> list[str]:
        async def listed() -> list[str]:
            ids: list[str] = await self._storage.list_checkpoint_ids(workflow_name=workflow)
            return ids

        ours = [name for name, it in self._ours.items() if it.workflow_name == workflow]
        names: list[str] = await self._stored.aread(f"list {workflow}", listed, lambda: ours)
        return names

    async def _any(self, name: str) -> Any:
        return await self._storage.load(name)
