"""A checkpointer for LangGraph that keeps threads in one file and makes runs time-travelable.

Outside a session it is an ordinary checkpointer. Several processes may use its file, and a state
takes only the space of what is new in it. In a session, checkpoints go onto the tape and come from
it.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from tracefork_core import UsageError
from tracefork_core.adapters import (
    Checkpoints,
    SavedCheckpoint,
    SavedValue,
    SavedWrite,
    begin_step,
    checkpoints,
    end_step,
    in_session,
    memory_checkpoints,
)
from tracefork_langgraph.aside import Line
from tracefork_langgraph.listening import listen_for
from tracefork_langgraph.records import (
    config_of,
    loaded,
    place_of,
    rests,
    saved,
    tuple_of,
    written,
)
from tracefork_langgraph.running import ids_after, is_resuming
from tracefork_langgraph.serde import StrictSerializer, TypeName, schema_types
from tracefork_langgraph.session_serde import declared_types

_STRATEGIES = ("keep_latest", "delete")


class TapeSaver(BaseCheckpointSaver[str]):
    """Keep the threads of graphs in one file. Safe to use from threads, tasks and processes.

    Args:
        path: the file, which the first checkpoint creates. It may also be a recording, to read it.
        allow: types of yours that states contain. Only needed for types that this process has not
            written itself and that `attach` does not find in the schemas of the graph.

    Raises:
        UsageError: `path` is not a file.
    """

    def __init__(self, path: str | Path, *, allow: Collection[type | TypeName] = ()) -> None:
        super().__init__(serde=StrictSerializer(allow))
        if str(path) == ":memory:":
            raise UsageError(
                "tracefork: a TapeSaver needs a file (got ':memory:'). Name a file, or use "
                "LangGraph's InMemorySaver."
            )
        self.path = Path(path).absolute()
        self._held: Checkpoints | None = None
        _ = self._store
        self._line = Line()
        listen_for(self)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        configurable = config["configurable"]
        store = self._store
        self._say_why(store, configurable)
        thread, ns = place_of(configurable)
        checkpoint = store.find(thread, ns, get_checkpoint_id(config) or None)
        return tuple_of(self.serde, store, checkpoint) if checkpoint is not None else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        store = self._store
        configurable = config["configurable"] if config else {}
        thread = str(configurable["thread_id"]) if "thread_id" in configurable else None
        ns = configurable.get("checkpoint_ns")
        at = configurable.get("checkpoint_id")
        if thread is not None and not ns:
            store.called("list", thread, at)
        matches = store.search(
            thread,
            ns,
            at,
            before=get_checkpoint_id(before) if before else None,
            metadata=filter,
            limit=limit,
        )
        return (tuple_of(self.serde, store, match) for match in matches)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        record, bodies = saved(self.serde, config, checkpoint, metadata)
        self._tell(record)
        self._store.put(record, bodies)
        return config_of(config["configurable"]["thread_id"], record.ns, record.id)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        records, bodies = written(self.serde, config, writes, task_id, task_path)
        self._store.put_writes(records, bodies)

    def delete_thread(self, thread_id: str) -> None:
        self._store.delete_thread(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._store.delete_for_runs([str(run) for run in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._store.copy_thread(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        if strategy not in _STRATEGIES:
            raise ValueError(f"strategy must be one of {', '.join(_STRATEGIES)} (got {strategy!r})")
        threads = [str(thread) for thread in thread_ids]
        self._store.prune(threads, keep_latest=strategy == "keep_latest", rests=rests)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        store = self._store
        thread, ns = place_of(config["configurable"])
        writes: dict[str, list[SavedWrite]] = {channel: [] for channel in channels}
        seeds: dict[str, SavedValue] = {}
        left = set(channels)
        seen: set[str] = set()
        checkpoint = store.find(thread, ns, get_checkpoint_id(config) or None) if left else None
        while left and checkpoint is not None and checkpoint.parent is not None:
            seen.add(checkpoint.id)
            checkpoint = (
                store.find(thread, ns, checkpoint.parent) if checkpoint.parent not in seen else None
            )
            if checkpoint is None:
                break
            for write in reversed(store.writes(thread, ns, checkpoint.id)):
                if write.channel in left:
                    writes[write.channel].append(write)
            for channel in left & checkpoint.values.keys():
                seeds[channel] = checkpoint.values[channel]
            left -= checkpoint.values.keys()
        history: dict[str, DeltaChannelHistory] = {}
        for channel, channel_writes in writes.items():
            decoded = [
                (one.task, channel, loaded(self.serde, store, thread, one.value))
                for one in reversed(channel_writes)
            ]
            history[channel] = {"writes": decoded}
            if channel in seeds:
                history[channel]["seed"] = loaded(self.serde, store, thread, seeds[channel])
        return history

    def get_next_version(self, current: str | int | None, channel: None) -> str:
        """Return a version that is unique across the branches of a thread.

        Branches with equal versions would share values.
        """
        last = int(str(current).split(".")[0]) if current is not None else 0
        return f"{last + 1:032}.{random.random():016}"  # noqa: S311 - like all checkpointers

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._line.do(lambda: self.get_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        tuples = self.list(config, filter=filter, before=before, limit=limit)
        while (checkpoint := await self._line.do(lambda: next(tuples, None))) is not None:
            yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        # Serialize now: another task may change the state before the writer thread runs.
        record, bodies = saved(self.serde, config, checkpoint, metadata)
        self._tell(record)
        await self._line.do(lambda: self._store.put(record, bodies))
        return config_of(config["configurable"]["thread_id"], record.ns, record.id)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        records, bodies = written(self.serde, config, writes, task_id, task_path)
        await self._line.do(lambda: self._store.put_writes(records, bodies))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._line.do(lambda: self.delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._line.do(lambda: self.delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._line.do(lambda: self.copy_thread(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._line.do(lambda: self.prune(thread_ids, strategy=strategy))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._line.do(
            lambda: self.get_delta_channel_history(config=config, channels=channels)
        )

    @property
    def _store(self) -> Checkpoints:
        store = checkpoints(self.path)
        if not in_session():  # A session owns its store; a file stays open while this holds it.
            self._held = store
        return store

    def _say_why(self, store: Checkpoints, configurable: Mapping[str, Any]) -> None:
        """Tell the store why the outermost graph asks for a checkpoint: to run, resume or look."""
        if configurable.get("checkpoint_ns"):
            return
        at = configurable.get("checkpoint_id")
        if "__pregel_runtime" not in configurable:
            store.called("look", str(configurable["thread_id"]), at)
        elif begins_run(configurable):
            store.called("resume" if is_resuming() else "run", str(configurable["thread_id"]), at)
            latest = store.find(str(configurable["thread_id"]), "")
            ids_after(latest.id if latest else None, alone=in_session())
        # Else LangGraph only checks that its checkpoint is still the latest.

    def _tell(self, record: SavedCheckpoint) -> None:
        """Put a checkpoint of the outermost graph on the tape as a step, in a session."""
        if not record.ns:
            detail: dict[str, object] = {"thread": record.thread, "id": record.id}
            step = record.metadata.get("step")
            end_step(begin_step("checkpoint", f"checkpoint {step}", detail=detail))


class MemorySaver(TapeSaver):
    """Keep the threads of one replay or fork in memory, and put nothing on a tape."""

    def __init__(self, serde: SerializerProtocol) -> None:
        BaseCheckpointSaver.__init__(self, serde=serde)
        self._line = Line()
        self._memory = memory_checkpoints()

    @property
    def _store(self) -> Checkpoints:
        return self._memory

    def put_saved(
        self, record: SavedCheckpoint, writes: Sequence[SavedWrite], bodies: Mapping[str, bytes]
    ) -> None:
        """Put a checkpoint that is serialised already, and what was written after it."""
        self._memory.put(record, bodies)
        self._memory.put_writes(writes, bodies)

    def _tell(self, record: SavedCheckpoint) -> None:
        """Do nothing: the recording has no such step."""


def begins_run(configurable: Mapping[str, Any]) -> bool:
    """Return whether the outermost graph reads the checkpoint that it will run from."""
    if configurable.get("checkpoint_ns") or "__pregel_runtime" not in configurable:
        return False
    return configurable.get("checkpoint_id") is not None or "checkpoint_id" not in configurable


def allow_schemas(graph: Any) -> None:
    """Allow the types that a compiled graph declares for its states in its checkpointer."""
    saver = getattr(graph, "checkpointer", None)
    if isinstance(saver, TapeSaver):
        saver.serde.allowed |= schema_types(graph)
    elif isinstance(saver, BaseCheckpointSaver):
        declared_types.update(schema_types(graph))
