"""Where an adapter keeps a framework's checkpoints, and what a tape holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tracefork_core.checkpoints.contract import Checkpoints, RecordedRun
from tracefork_core.exchange.current import current_session
from tracefork_core.tape.checkpoint import Checkpoint as SavedCheckpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.tape import Tape


def checkpoints(path: Path) -> Checkpoints:
    """Return the store for a framework's checkpoints, whose file is at `path`.

    While recording, checkpoints also go onto the tape (and only there if `path` is the tape). In a
    replay or fork they are read from the tape, and new ones are kept in memory: the file does not
    change.

    Raises:
        UsageError: this is a child process of a session.
    """
    session = current_session()
    if session is not None:
        return session.checkpoints(path)
    from tracefork_core.checkpoints.store import checkpoint_file

    return checkpoint_file(path)


def memory_checkpoints() -> Checkpoints:
    """Return a new store for a framework's checkpoints that keeps them in memory."""
    from tracefork_core.checkpoints.store import in_memory

    return in_memory()


def without_secrets(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return a checkpoint's metadata with placeholders in place of secrets."""
    from tracefork_core.masking.redactor import without_secrets as cleaned

    return cleaned(metadata)


def recorded_checkpoints(tape: Tape) -> list[SavedCheckpoint]:
    """Return the checkpoints of a recorded run in the order of making; a parent's come first."""
    from tracefork_core.checkpoints.lineage import lineage_of

    return lineage_of(tape).checkpoints


def recorded_runs(tape: Tape, thread: str, at: str) -> list[RecordedRun]:
    """Return the runs of a recorded program that continued a thread from a checkpoint."""
    from tracefork_core.checkpoints.lineage import runs_of

    return runs_of(tape, thread, at)


def revisited_checkpoint(tape: Tape, thread: str) -> str | None:
    """Return the id of the first checkpoint that a recorded program itself returned to, if any."""
    from tracefork_core.checkpoints.lineage import revisited_checkpoint

    return revisited_checkpoint(tape, thread)
