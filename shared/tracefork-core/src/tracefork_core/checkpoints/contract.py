"""The interface between an adapter's checkpointer and the store of its checkpoints.

Outside a session, the store is a file of threads (`store.CheckpointFile`). Inside one, the session
implements it: it records checkpoints on the tape, or answers from a tape.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tracefork_core.tape.checkpoint import Checkpoint, Value, Write

Call = Literal["run", "resume", "look", "list"]
"""What a framework is about to do: run from a checkpoint, resume after an interrupt, look, list."""

Rests = Callable[[Checkpoint], Collection[str] | None]
Bodies = Mapping[str, bytes]
"""Serialised values by the sha256 of their bytes."""


@dataclass(slots=True)
class RecordedRun:
    """One run of a recorded thread.

    Attributes:
        place: the checkpoint that it ran from.
        resumed: whether it resumed after an interrupt, with an answer.
        travelled: whether it named that checkpoint by its id, and it was not the last one.
        before: what tasks had written after that checkpoint before this run.
        written: what tasks of the outermost graph wrote from then until the next run.
        before_inside: what tasks of nested graphs had written before this run.
        written_inside: what tasks of nested graphs wrote from then until the next run.
        led_to: the first checkpoint that it continued to; None if there is none.
    """

    place: str
    resumed: bool
    travelled: bool = False
    before: list[Write] = field(default_factory=list)
    written: list[Write] = field(default_factory=list)
    before_inside: list[Write] = field(default_factory=list)
    written_inside: list[Write] = field(default_factory=list)
    led_to: Checkpoint | None = None


class Checkpoints(Protocol):
    """Checkpoints by thread. Safe to call from any thread."""

    def called(self, call: Call, thread: str, at: str | None) -> None:
        """Note what a framework is about to do with a thread, `at` a checkpoint if it names one."""

    def put(self, checkpoint: Checkpoint, bodies: Bodies) -> None:
        """Store a checkpoint durably, in place of one with the same thread, ns and id."""

    def put_writes(self, writes: Sequence[Write], bodies: Bodies) -> None: ...

    def find(self, thread: str, ns: str, at: str | None = None) -> Checkpoint | None:
        """Return a checkpoint by its id `at`, or the latest if `at` is None."""

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
        """Yield checkpoints, the latest first, filtered by every argument that is not None."""

    def writes(self, thread: str, ns: str, at: str) -> list[Write]:
        """Return what was written after a checkpoint, sorted by path, task and idx."""

    def body(self, thread: str, value: Value) -> bytes:
        """Return the bytes of a value that a checkpoint or a write of this thread names.

        Raises:
            TapeError: the value is missing or corrupt.
        """

    def delete_thread(self, thread: str) -> None: ...

    def delete_for_runs(self, runs: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata have one of these as `run_id`."""

    def copy_thread(self, source: str, target: str) -> None:
        """Copy all checkpoints and writes of one thread to another, replacing its content."""

    def prune(
        self, threads: Sequence[str], *, keep_latest: bool, rests: Rests | None = None
    ) -> None:
        """Delete the checkpoints of threads; keep the latest of each ns, and what it needs.

        `rests` returns the channels whose state is not in a checkpoint but in its ancestors, or
        None if its parent decides. Ancestors stay until each channel has a value.
        """
