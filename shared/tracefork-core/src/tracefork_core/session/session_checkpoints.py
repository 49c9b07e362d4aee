"""The checkpoints of one run: put on its tape, answered from one, or both in a fork.

A recorded run keeps its checkpoints where it always does. The tape gets them too, and with them
those from earlier runs that this one read. A replay is answered from the tape, and what it puts
itself goes into memory: a recording is never changed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tracefork_core.checkpoints.contract import Bodies, Call, Checkpoints, Rests
from tracefork_core.checkpoints.lineage import (
    ROOT,
    RUNS,
    Key,
    Lineage,
    key_of,
    lineage_of,
    stores_of,
)
from tracefork_core.errors import UsageError
from tracefork_core.session.run_state import RunState
from tracefork_core.session.tape_sink import Sink
from tracefork_core.session.travel import Route, Travel, Way
from tracefork_core.tape import Tape
from tracefork_core.tape.checkpoint import (
    CALLED,
    SAVED,
    WRITTEN,
    Called,
    Checkpoint,
    Saved,
    Value,
    Write,
    Written,
    named,
)
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.file import Body


class CheckpointFiles:
    """The checkpoints of one session, by the file in which its program keeps them.

    `source` is the tape that answers, None in a recording; `travel` is there if it is.
    """

    def __init__(
        self, state: RunState, sink: Sink, source: Tape | None, travel: Travel | None
    ) -> None:
        self._state = state
        self._sink = sink
        self._source = source
        self._travel = travel
        self._by_path: dict[Path, SessionCheckpoints] = {}

    def at(self, path: Path) -> SessionCheckpoints:
        """Return the checkpoints of this run, which a recorded run also keeps at `path`.

        Raises:
            UsageError: on the tape, the file could not be told from another one.
        """
        with self._state.lock:
            if self._source is not None and self._travel is not None:
                return self._answering(self._source, self._travel, path)
            if (where := path.absolute()) not in self._by_path:
                if path.name in (other.name for other in self._by_path):
                    raise UsageError(
                        f"tracefork: two checkpointers of this run have files called {path.name}. "
                        "The tape could not tell them apart. Rename one of the files."
                    )
                own = self._own(where)
                self._by_path[where] = SessionCheckpoints(self._state, self._sink, own, path.name)
            return self._by_path[where]

    def _answering(self, tape: Tape, travel: Travel, path: Path) -> SessionCheckpoints:
        """Return the checkpoints that a tape answers with: those of the file of this name.

        Where the recorded run had one file only, it is that one whatever its name is now.
        """
        from tracefork_core.checkpoints.store import in_memory

        names = stores_of(tape)
        name = path.name if path.name in names or not names else names[0]
        if path.name != name and len(names) > 1:
            raise UsageError(
                f"tracefork: the run on {tape.path} kept its checkpoints in {', '.join(names)}, "
                f"not in {path.name}. Name one of these files."
            )
        if (where := Path(name)) not in self._by_path:
            own = in_memory(tape.blob)  # A run that a tape answers touches nothing else.
            self._by_path[where] = SessionCheckpoints(
                self._state, self._sink, own, name, (travel, lineage_of(tape, name))
            )
        return self._by_path[where]

    def _own(self, path: Path) -> Checkpoints:
        """Return where a recorded run keeps its checkpoints besides its tape."""
        from tracefork_core.checkpoints.store import checkpoint_file, in_memory

        tape = self._sink.tape
        is_tape = tape is not None and os.path.realpath(tape.path) == os.path.realpath(path)
        return in_memory() if is_tape else checkpoint_file(path)


class SessionCheckpoints:
    """Implements `checkpoints.contract.Checkpoints` for one session and one file.

    `own` is where the run keeps them, under the name `store`. In a replay `answering` is what the
    tape holds, and how the run leaves its order.
    """

    def __init__(
        self,
        state: RunState,
        sink: Sink,
        own: Checkpoints,
        store: str,
        answering: tuple[Travel, Lineage] | None = None,
    ) -> None:
        self._state = state
        self._sink = sink
        self._own = own
        self._store = store
        self._put: set[Key] = set()
        self._noted: set[Key] = set()
        self._on_tape: dict[str, str] = {}
        self._lock = threading.RLock()
        self._route = Route(*answering, own, self._put) if answering else None

    def called(self, call: Call, thread: str, at: str | None) -> None:
        """Note what a framework is about to do with a thread, at which checkpoint if it says."""
        with self._lock:
            way = self._route.way(call, thread, at) if self._route else None
            made, skipped = way or Way(0, [])
            latest = self._own.find(thread, ROOT, at) if call in RUNS else None
            latest_id = latest.id if latest else None
            asked = self._state.asked
            event = Called(call, thread, at, latest_id, asked, made, skipped, self._store)
            self._sink.write(lambda tape: tape.keep(CALLED, event, []))

    def put(self, checkpoint: Checkpoint, bodies: Bodies) -> None:
        with self._lock:  # Before another thread finds it and takes it for an older one.
            self._put.add(key_of(checkpoint))
        self._own.put(checkpoint, bodies)
        with self._lock:
            self._record(SAVED, Saved(checkpoint, store=self._store), bodies)

    def put_writes(self, writes: Sequence[Write], bodies: Bodies) -> None:
        self._own.put_writes(writes, bodies)
        with self._lock:
            self._record(WRITTEN, Written(list(writes), store=self._store), bodies)

    def find(self, thread: str, ns: str, at: str | None = None) -> Checkpoint | None:
        checkpoint = self._own.find(thread, ns, at)
        if checkpoint is not None:
            self._note(checkpoint)
        return checkpoint

    def search(
        self,
        thread: str | None = None,
        ns: str | None = None,
        at: str | None = None,
        *,
        before: str | None = None,
        metadata: Mapping[str, object] | None = None,
        limit: int | None = None,
    ) -> Iterator[Checkpoint]:
        for checkpoint in self._own.search(
            thread, ns, at, before=before, metadata=metadata, limit=limit
        ):
            self._note(checkpoint)
            yield checkpoint

    def writes(self, thread: str, ns: str, at: str) -> list[Write]:
        return self._own.writes(thread, ns, at)

    def body(self, thread: str, value: Value) -> bytes:
        return self._own.body(thread, value)

    def delete_thread(self, thread: str) -> None:
        self._own.delete_thread(thread)

    def delete_for_runs(self, runs: Sequence[str]) -> None:
        self._own.delete_for_runs(runs)

    def copy_thread(self, source: str, target: str) -> None:
        for _ in self.search(source):
            pass  # A replay can copy only what is on the tape.
        self._own.copy_thread(source, target)
        with self._lock:
            for copy in self._own.search(target):
                self._put.add(key_of(copy))
                self._record(SAVED, Saved(copy, store=self._store), {})
                if writes := self._own.writes(*key_of(copy)):
                    self._record(WRITTEN, Written(writes, store=self._store), {})

    def prune(
        self, threads: Sequence[str], *, keep_latest: bool, rests: Rests | None = None
    ) -> None:
        self._own.prune(threads, keep_latest=keep_latest, rests=rests)

    def _note(self, checkpoint: Checkpoint) -> None:
        """Put a checkpoint on the tape that the run read and did not put itself."""
        key = key_of(checkpoint)
        with self._lock:
            if key in self._put or key in self._noted:
                return
            self._noted.add(key)
            self._record(SAVED, Saved(checkpoint, known=True, store=self._store), {})
            if writes := self._own.writes(*key):
                self._record(WRITTEN, Written(writes, known=True, store=self._store), {})

    def _record(self, kind: str, event: Saved | Written, bodies: Bodies) -> None:
        """Put an event on the tape, with those values it names that are not there yet."""
        if self._sink.tape is None:
            return
        subject = event.checkpoint if isinstance(event, Saved) else event.writes[0]
        fresh: list[Body] = []
        for name, value in named(event):
            if value.sha not in self._on_tape:
                body = bodies.get(value.sha)
                body = self._own.body(subject.thread, value) if body is None else body
                masked = self._state.masking.packed(body)
                self._on_tape[value.sha] = sha256(masked)
                like = f"{kind} {name}", f"{subject.thread} {subject.ns}"
                fresh.append((masked, self._on_tape[value.sha], like))
        masked_event = self._masked(event)
        self._sink.write(lambda tape: tape.keep(kind, masked_event, fresh))

    def _masked(self, event: Saved | Written) -> Saved | Written:
        replace = msgspec.structs.replace
        if isinstance(event, Written):
            writes = [replace(write, value=self._moved(write.value)) for write in event.writes]
            return replace(event, writes=writes)
        saved = event.checkpoint
        masked = replace(
            saved,
            head=self._moved(saved.head),
            values={name: self._moved(value) for name, value in saved.values.items()},
            metadata=self._state.masking.names(saved.metadata),
        )
        return replace(event, checkpoint=masked)

    def _moved(self, value: Value) -> Value:
        sha = self._on_tape[value.sha]
        return value if sha == value.sha else Value(value.tag, sha)
