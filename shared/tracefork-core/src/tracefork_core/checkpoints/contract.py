"""What an adapter's checkpointer asks of the place where its checkpoints lie.

Outside a session that is a file of threads (`store.CheckpointFile`); in a session it is what the
session makes of it: recorded on the tape, or answered from one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tracefork_core.tape.checkpoint import Checkpoint, Value, Write

Call = Literal["run", "resume", "look", "list"]
"""What a framework is about to do: run from a checkpoint, go on after an interrupt, look, list."""

Rests = Callable[[Checkpoint], Collection[str] | None]
Bodies = Mapping[str, bytes]
"""The serialised values that are put, by the sha256 of their bytes."""


@dataclass(slots=True)
class RecordedRun:
    """One time that a recorded thread was run on.

    Attributes:
        place: the checkpoint that it ran from.
        resumed: whether it was given an answer.
        travelled: whether that checkpoint was asked for by its id, and was not the last one.
        before: what tasks had written there by then.
        written: what was written to the outermost graph from then on, until it was run again.
        before_inside: what tasks of graphs inside its nodes had written by then, ever.
        written_inside: what they wrote from then on, until it was run again.
        led_to: the checkpoint that it went on to first; None where it went on to none.
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
        """Learn what a framework is about to do with a thread, `at` which checkpoint if it says."""

    def put(self, checkpoint: Checkpoint, bodies: Bodies) -> None:
        """Keep a checkpoint, durably; one of the same thread, ns and id is replaced."""

    def put_writes(self, writes: Sequence[Write], bodies: Bodies) -> None: ...

    def find(self, thread: str, ns: str, at: str | None = None) -> Checkpoint | None:
        """Return a checkpoint, the latest where `at` (an id) is None."""

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
        """Yield checkpoints, the latest first: those before an id, with these metadata."""

    def writes(self, thread: str, ns: str, at: str) -> list[Write]:
        """Return what was written after a checkpoint, sorted by path, task and idx."""

    def body(self, thread: str, value: Value) -> bytes:
        """Return the bytes of a value that a checkpoint or a write of this thread names.

        Raises:
            TapeError: they are not there, or are not what was put.
        """

    def delete_thread(self, thread: str) -> None: ...

    def delete_for_runs(self, runs: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata name one of these as `run_id`."""

    def copy_thread(self, source: str, target: str) -> None:
        """Copy all checkpoints and writes of one thread to another, in place of what is there."""

    def prune(
        self, threads: Sequence[str], *, keep_latest: bool, rests: Rests | None = None
    ) -> None:
        """Delete the checkpoints of threads; keep the latest of each ns, and what it rests on.

        `rests` names the channels of a checkpoint whose state is not in it, but in what was written
        before, None where its parent has to say: its ancestors stay, up to those that hold a value
        of each.
        """
