"""Put the checkpointers of the user's own behind a session: `SqliteSaver`, `PostgresSaver`, others.

A thread that has messages already would make each replay ask something else, and each replay and
fork would add checkpoints to the user's database. So a recording notes the checkpoints that it
read and did not put itself. A replay or fork finds these, and those that it put itself, in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from types import ModuleType
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from tracefork_core import UsageError
from tracefork_core.adapters import Noted, Patches, State, put_in_front, undisturbed, upkeep
from tracefork_langgraph import ADAPTER
from tracefork_langgraph.connections import OPEN, opening, same_data
from tracefork_langgraph.noted_checkpoints import from_note, note_of
from tracefork_langgraph.records import place_of
from tracefork_langgraph.running import ids_after
from tracefork_langgraph.saver import MemorySaver, TapeSaver, begins_run
from tracefork_langgraph.session_serde import SessionSerializer

_NAMES = (
    *("get_tuple", "list", "put", "put_writes", "get_delta_channel_history", "setup"),
    *("delete_thread", "delete_for_runs", "copy_thread", "prune"),
    *("aget_tuple", "alist", "aput", "aput_writes", "aget_delta_channel_history"),
    *("adelete_thread", "adelete_for_runs", "acopy_thread", "aprune"),
)
Key = tuple[str, str, str]
"""Thread, ns and id of a checkpoint."""


class Checkpointer:
    """Stands in for one checkpointer in one session. Has its methods; `live` is its own method."""

    def __init__(self, shared: Any, state: State) -> None:
        self._shared = shared
        self._state = state
        self._serde = SessionSerializer(shared.serde)
        self._memory = MemorySaver(self._serde) if state.is_answered else None
        self._put: set[Key] = set()
        self._noted: dict[Key, str] = {}
        self._learned: dict[str, int] = {}

    def get_tuple(self, live: Any, config: RunnableConfig) -> CheckpointTuple | None:
        n, memory = self._begin(config), self._memory
        with undisturbed():
            found: CheckpointTuple | None = (memory.get_tuple if memory else live)(config)
        self._read(config, n, found)
        return found

    async def aget_tuple(self, live: Any, config: RunnableConfig) -> CheckpointTuple | None:
        n, memory = self._begin(config), self._memory
        with undisturbed():
            found = memory.get_tuple(config) if memory else await live(config)
        self._read(config, n, found)
        return found

    def list(
        self, live: Any, config: RunnableConfig | None, **options: Any
    ) -> Iterator[CheckpointTuple]:
        n, memory = self._begin(config), self._memory
        with undisturbed():
            tuples = iter((memory.list if memory else live)(config, **options))
        while True:
            with undisturbed():
                found = next(tuples, None)
            if found is None:
                return
            self._note(_thread(config), n, found)
            yield found

    async def alist(
        self, live: Any, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        if self._memory:
            for found in self.list(live, config, **options):
                yield found
            return
        n = self._begin(config)
        tuples = live(config, **options)
        while True:
            with undisturbed():
                found = await anext(tuples, None)
            if found is None:
                return
            self._note(_thread(config), n, found)
            yield found

    def put(self, live: Any, config: RunnableConfig, checkpoint: Any, *rest: Any) -> Any:
        self._put.add((*place_of(config["configurable"]), checkpoint["id"]))
        return self._change("put", live, config, checkpoint, *rest)

    async def aput(self, live: Any, config: RunnableConfig, checkpoint: Any, *rest: Any) -> Any:
        self._put.add((*place_of(config["configurable"]), checkpoint["id"]))
        return await self._achange("put", live, config, checkpoint, *rest)

    def get_delta_channel_history(
        self, live: Any, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Any:
        n, memory = self._begin(config), self._memory
        with undisturbed():
            if memory:
                return memory.get_delta_channel_history(config=config, channels=channels)
            history = live(config=config, channels=channels)
            found = self._shared.get_tuple(config) if channels else None
            while found is not None and found.parent_config is not None:
                found = self._shared.get_tuple(found.parent_config)
                if self._is_last(found, n, channels):
                    break
        return history

    async def aget_delta_channel_history(
        self, live: Any, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Any:
        n, memory = self._begin(config), self._memory
        with undisturbed():
            if memory:
                return memory.get_delta_channel_history(config=config, channels=channels)
            history = await live(config=config, channels=channels)
            found = await self._shared.aget_tuple(config) if channels else None
            while found is not None and found.parent_config is not None:
                found = await self._shared.aget_tuple(found.parent_config)
                if self._is_last(found, n, channels):
                    break
        return history

    def setup(self, live: Any) -> Any:
        return upkeep(self._state, live)

    def __getattr__(self, name: str) -> Any:
        """Return one of the methods that change a checkpointer and read nothing."""
        if name not in _NAMES:
            raise AttributeError(name)
        sync = name.removeprefix("a")
        change = self._achange if name != sync else self._change
        return lambda live, *args, **kwargs: change(sync, live, *args, **kwargs)

    def _change(self, name: str, live: Any, *args: Any, **kwargs: Any) -> Any:
        with undisturbed():
            return (getattr(self._memory, name) if self._memory else live)(*args, **kwargs)

    async def _achange(self, name: str, live: Any, *args: Any, **kwargs: Any) -> Any:
        with undisturbed():
            if self._memory:
                return getattr(self._memory, name)(*args, **kwargs)
            return await live(*args, **kwargs)

    def _begin(self, config: RunnableConfig | None) -> int:
        """Number a read of a thread, and learn what the recording had read of it by then."""
        thread = _thread(config)
        n = self._state.number(thread)
        if self._memory:
            noted = self._state.recorded(thread, n)
            for one in noted[self._learned.get(thread, 0) :]:
                self._learn(self._memory, one)
            self._learned[thread] = len(noted)
        return n

    def _learn(self, memory: MemorySaver, noted: Noted) -> None:
        """Put a checkpoint that the recording found into memory, unless this run put it."""
        if (why := noted.answer.get("unkept")) is not None:
            raise UsageError(
                f"tracefork: the recorded run read a checkpoint that a tape cannot hold: {why} Use "
                "types that LangGraph serializes without pickle, and record the run again."
            )
        try:
            record, writes, bodies = from_note(noted)
        except ValueError as error:  # msgspec.ValidationError is one.
            raise UsageError(
                f"tracefork: the tape is corrupt: a checkpoint that was read is not one: {error}."
            ) from error
        if (record.thread, record.ns, record.id) not in self._put:
            memory.put_saved(record, writes, bodies)

    def _read(self, config: RunnableConfig, n: int, found: CheckpointTuple | None) -> None:
        configurable = config["configurable"]
        if not self._memory and begins_run(configurable):
            ids_after(found.checkpoint["id"] if found else None, alone=True)
        self._note(_thread(config), n, found)

    def _is_last(self, found: CheckpointTuple | None, n: int, channels: Sequence[str]) -> bool:
        """Note an ancestor that channels are built from; return whether all of them end there."""
        if found is None:
            return True
        self._note(str(found.config["configurable"]["thread_id"]), n, found)
        return all(channel in found.checkpoint["channel_values"] for channel in channels)

    def _note(self, thread: str, n: int, found: CheckpointTuple | None) -> None:
        """Put a checkpoint on the tape that the run read and did not put itself."""
        if found is None or not self._state.is_noted:
            return
        key = (*place_of(found.config["configurable"]), found.checkpoint["id"])
        if key in self._put:
            return
        try:
            answer, values = note_of(self._serde.strict, found)
        except TypeError as error:
            answer, values = {"unkept": f"{error}."}, []
        if self._noted.get(key) != (digest := _digest(answer, values)):
            self._noted[key] = digest
            self._state.note(thread, n, answer, values)


def _thread(config: RunnableConfig | None) -> str:
    """Return the thread that is read; empty if all are."""
    return str((config or {}).get("configurable", {}).get("thread_id", ""))


def _digest(answer: object, values: Sequence[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256(repr(answer).encode("utf-8", "replace"))
    for _, data in values:
        digest.update(data)
    return digest.hexdigest()


def _is_ours(saver: Any) -> bool:
    return isinstance(saver, TapeSaver)


def _of_savers(patches: Patches, module: ModuleType) -> None:
    put_in_front(
        patches,
        module.BaseCheckpointSaver,
        _NAMES,
        Checkpointer,
        same=same_data,
        is_exempt=_is_ours,
        replace={OPEN: opening},
    )


SAVERS = ADAPTER.instrument("langgraph.checkpoint.base", _of_savers)
"""Every session switches it on when that module is imported."""
