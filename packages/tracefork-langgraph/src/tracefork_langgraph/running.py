"""Where this code runs in a graph: from which checkpoint, and whether the run was resumed.

The config of the running task says it, in every thread and task that LangGraph starts; a thread of
the agent's own knows nothing of it.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.base import id as ids
from langgraph.types import Command

_LATEST = (
    (datetime(2100, 1, 1, tzinfo=UTC) - datetime(1582, 10, 15, tzinfo=UTC))
    // timedelta(microseconds=1)
    * 10
)
"""The last time that an id is believed, in its own unit: a later one is no time but an attack."""

_resumed: ContextVar[bool] = ContextVar("tracefork_langgraph_resumed", default=False)


def running_from() -> tuple[str, str] | None:
    """Return the thread and the id of the checkpoint that the outermost graph runs from here."""
    configurable = (var_child_runnable_config.get() or {}).get("configurable") or {}
    thread = configurable.get("thread_id")
    checkpoint = (configurable.get("checkpoint_map") or {}).get("")
    if thread is None or not isinstance(checkpoint, str):
        return None
    return str(thread), checkpoint


def note_input(given: object) -> None:
    """Note what the run that begins here is given."""
    _resumed.set(isinstance(given, Command) and given.resume is not None)


def is_resuming() -> bool:
    """Return whether the run that begins here goes on after an interrupt."""
    return _resumed.get()


def ids_after(checkpoint: str | None, *, alone: bool) -> None:
    """Let the ids of new checkpoints sort after that of one there is, if there is one.

    They hold the time, which is that of the recording for who travels in it, and of another machine
    for who goes on there. LangGraph takes the latest one by its id.

    After that one `alone`, in a session: an id goes into requests (of an interrupt, say), so it is
    what it was when this was recorded, whatever this process has made before.
    """
    made_at = _time_in(checkpoint) if checkpoint else None
    if alone:
        ids._last_v6_timestamp = made_at  # noqa: SLF001 - a test says so if it moves
    elif made_at is not None:
        ids._last_v6_timestamp = max(ids._last_v6_timestamp or 0, made_at)  # noqa: SLF001


def _time_in(checkpoint: str) -> int | None:
    """Return when an id was made, in its own unit.

    None where it holds no time, or one that nothing can have been made at: all later ids would
    begin there.
    """
    try:
        made = UUID(checkpoint)
    except ValueError:
        return None
    if made.version != 6:
        return None
    # The time is in the first half, but for the four bits of the version.
    made_at = (made.int >> 80) << 12 | (made.int >> 64) & 0x0FFF
    return made_at if made_at <= _LATEST else None
