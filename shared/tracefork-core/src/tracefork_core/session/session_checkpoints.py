"""The checkpoints of one run: put on its tape, answered from one, or both in a fork.

A recorded run keeps its checkpoints where it always does, and the tape gets them too, with those
from earlier that it read. A replay is answered from the tape, and what it puts itself goes into
memory: a recording is never changed. There a thread is run *again*, as the recorded program did,
and then looks as it did at that time; or it is *travelled*: somebody looks into its recorded past
and runs on from one of its checkpoints. Then only what followed there is still to come.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from tracefork_core.checkpoints.contract import Bodies, Call, Checkpoints, Rests
from tracefork_core.checkpoints.lineage import ROOT, RUNS, Key, Lineage, key_of, stand_in
from tracefork_core.masking.masking import Masking
from tracefork_core.session.tape_sink import Sink
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

_Way = tuple[int, list[int]]
"""When the checkpoint was made that a run goes on from, and the exchanges it skips by that."""


class Run(Protocol):
    """What the checkpoints of a run need of its session."""

    masking: Masking
    sink: Sink

    @property
    def asked(self) -> int: ...


class Ways(Protocol):
    """The ways that a run may take through the recording it is answered from."""

    @property
    def run(self) -> Run: ...

    def depart(self) -> None:
        """Leave the way of the recorded run: nothing of it has to be asked for any more."""

    def travel(
        self, lineage: Lineage, thread: str, at: str | None, made: int, *, resumed: bool
    ) -> list[int]:
        """Go on from a recorded checkpoint; return the exchanges that are skipped by it."""

    def skip(self, exchanges: Sequence[int], made: int) -> None:
        """Go past exchanges as the recorded run did, which travelled to what was made at `made`."""

    def draw_anew(self, made: int) -> None:
        """Draw other ids and random values than what led to a checkpoint made at `made`."""


class SessionCheckpoints:
    """Implements `checkpoints.contract.Checkpoints` for one session.

    `own` is where the run keeps them, in what is called `store`; `recorded` is what the tape knows
    that it is answered from.
    """

    def __init__(self, ways: Ways, own: Checkpoints, store: str, recorded: Lineage | None) -> None:
        self._ways = ways
        self._store = store
        self._run = ways.run
        self._own = own
        self._recorded = recorded
        self._put: set[Key] = set()
        self._noted: set[Key] = set()
        self._on_tape: dict[str, str] = {}
        self._runs: dict[str, deque[Called]] = defaultdict(deque)
        self._again: set[str] = set()
        self._travelled: set[str] = set()
        self._lock = threading.RLock()
        if recorded is not None:
            self._load(recorded.known())
            for thread in recorded.threads:
                self._runs[thread].extend(recorded.runs(thread))

    def called(self, call: Call, thread: str, at: str | None) -> None:
        """Learn what a framework is about to do with a thread, `at` which checkpoint if it says."""
        with self._lock:
            way = self._way(self._recorded, call, thread, at) if self._recorded else None
            made, skipped = way or (0, [])
            latest = self._own.find(thread, ROOT, at) if call in RUNS else None
            found = latest.id if latest else None
            event = Called(call, thread, at, found, self._run.asked, made, skipped, self._store)
            self._run.sink.write(lambda tape: tape.keep(CALLED, event, []))

    def put(self, checkpoint: Checkpoint, bodies: Bodies) -> None:
        with self._lock:  # Before somebody finds it, and takes it for what was there.
            self._put.add(key_of(checkpoint))
        self._own.put(checkpoint, bodies)
        with self._lock:
            self._record(SAVED, Saved(checkpoint, store=self._store), bodies)

    def put_writes(self, writes: Sequence[Write], bodies: Bodies) -> None:
        self._own.put_writes(writes, bodies)
        with self._lock:
            self._record(WRITTEN, Written(list(writes), store=self._store), bodies)

    def find(self, thread: str, ns: str, at: str | None = None) -> Checkpoint | None:
        found = self._own.find(thread, ns, at)
        if found is not None:
            self._note(found)
        return found

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
        for found in self._own.search(
            thread, ns, at, before=before, metadata=metadata, limit=limit
        ):
            self._note(found)
            yield found

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
            pass  # What is copied has to be on the tape for a replay to copy it.
        self._own.copy_thread(source, target)
        with self._lock:
            for one in self._own.search(target):
                self._put.add(key_of(one))
                self._record(SAVED, Saved(one, store=self._store), {})
                if writes := self._own.writes(*key_of(one)):
                    self._record(WRITTEN, Written(writes, store=self._store), {})

    def prune(
        self, threads: Sequence[str], *, keep_latest: bool, rests: Rests | None = None
    ) -> None:
        self._own.prune(threads, keep_latest=keep_latest, rests=rests)

    def _way(self, recorded: Lineage, call: Call, thread: str, at: str | None) -> _Way | None:
        """Find out whether a thread is run again or travelled; return the way it goes by that."""
        if thread not in recorded.threads:
            return None
        if call not in RUNS:
            if thread not in self._again | self._travelled:
                return self._look(recorded, call, thread)
            return None
        if thread not in self._travelled:
            due = self._runs[thread].popleft() if self._runs[thread] else None
            if at is None or (due is not None and self._is_same(due, thread, at)):
                self._again.add(thread)
                if due is None or not due.made:
                    return None
                self._ways.skip(due.skipped, due.made)
                return due.made, due.skipped
            self._show(recorded, thread)
        return self._travel(recorded, thread, at, resumed=call == "resume")

    def _look(self, recorded: Lineage, call: Call, thread: str) -> _Way | None:
        """Read a thread, or change it: as the recorded run began, or at what it came to."""
        first = recorded.first(thread)
        if first is not None and first.call == call:
            self._again.add(thread)
            way = (first.made, first.skipped) if first.made else None
        else:
            self._show(recorded, thread)
            latest = self._own.find(thread, ROOT)
            way = (latest.made, []) if latest is not None and latest.made else None
        if way is not None:
            self._ways.draw_anew(way[0])
        return way

    def _is_same(self, due: Called, thread: str, at: str) -> bool:
        """Return whether a run begins where the recorded one began, at what is there by now."""
        if due.id is None or self._own.find(thread, ROOT, at) is None:
            return False
        return due.id == at or (thread, ROOT, at) in self._put

    def _travel(
        self, recorded: Lineage, thread: str, at: str | None, *, resumed: bool
    ) -> _Way | None:
        place = self._own.find(thread, ROOT, at)
        if place is None or (at is None and key_of(place) in self._put):
            return None  # It goes on where this run stands.
        target = stand_in(recorded, self._upwards(place))
        skipped = self._ways.travel(recorded, thread, target, place.made, resumed=resumed)
        return place.made, skipped

    def _upwards(self, place: Checkpoint | None) -> Iterator[Checkpoint]:
        seen: set[str] = set()
        while place is not None and place.id not in seen:
            seen.add(place.id)
            yield place
            place = self._own.find(place.thread, ROOT, place.parent) if place.parent else None

    def _show(self, recorded: Lineage, thread: str) -> None:
        """Show a thread as it was at the end of the recording, from here on."""
        self._travelled.add(thread)
        self._ways.depart()
        self._load(recorded.put(thread))

    def _load(self, found: Iterator[Checkpoint | Sequence[Write]]) -> None:
        for one in found:
            if not isinstance(one, Checkpoint):
                self._own.put_writes(one, {})
            elif key_of(one) not in self._put:
                self._own.put(one, {})

    def _note(self, found: Checkpoint) -> None:
        """Put a checkpoint on the tape that the run read and did not put itself."""
        key = key_of(found)
        with self._lock:
            if key in self._put or key in self._noted:
                return
            self._noted.add(key)
            self._record(SAVED, Saved(found, known=True, store=self._store), {})
            if writes := self._own.writes(*key):
                self._record(WRITTEN, Written(writes, known=True, store=self._store), {})

    def _record(self, kind: str, event: Saved | Written, bodies: Bodies) -> None:
        """Put an event on the tape with what it names that is not there yet."""
        if self._run.sink.tape is None:
            return
        ns, thread = _whose(event)
        fresh: list[Body] = []
        for name, value in named(event):
            if value.sha not in self._on_tape:
                body = bodies.get(value.sha)
                body = self._own.body(thread, value) if body is None else body
                masked = self._run.masking.packed(body)
                self._on_tape[value.sha] = sha256(masked)
                like = f"{kind} {name}", f"{thread} {ns}"
                fresh.append((masked, self._on_tape[value.sha], like))
        masked_event = self._masked(event)
        self._run.sink.write(lambda tape: tape.keep(kind, masked_event, fresh))

    def _masked(self, event: Saved | Written) -> Saved | Written:
        replace = msgspec.structs.replace
        if isinstance(event, Written):
            writes = [replace(one, value=self._moved(one.value)) for one in event.writes]
            return replace(event, writes=writes)
        one = event.checkpoint
        values = {name: self._moved(value) for name, value in one.values.items()}
        metadata = self._run.masking.names(one.metadata)
        head = self._moved(one.head)
        return replace(event, checkpoint=replace(one, head=head, values=values, metadata=metadata))

    def _moved(self, value: Value) -> Value:
        sha = self._on_tape[value.sha]
        return value if sha == value.sha else Value(value.tag, sha)


def _whose(event: Saved | Written) -> tuple[str, str]:
    """Return the ns and the thread of an event."""
    one = event.checkpoint if isinstance(event, Saved) else event.writes[0]
    return one.ns, one.thread
