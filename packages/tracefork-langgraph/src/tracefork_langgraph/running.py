"""Tell from which checkpoint the current code runs, and whether the run was resumed.

The config of the running task says so in every thread and task that LangGraph starts. A thread that
the agent starts itself does not have it.
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
"""The latest time that is accepted in an id, in the id's unit. A later one is forged or corrupt."""

_resumed: ContextVar[bool] = ContextVar("tracefork_langgraph_resumed", default=False)


def running_from() -> tuple[str, str] | None:
    """Return the thread and the checkpoint id that the outermost graph runs from."""
    configurable = (var_child_runnable_config.get() or {}).get("configurable") or {}
    thread = configurable.get("thread_id")
    checkpoint = (configurable.get("checkpoint_map") or {}).get("")
    if thread is None or not isinstance(checkpoint, str):
        return None
    return str(thread), checkpoint


def note_input(given: object) -> None:
    """Note whether the input of the run that starts here is an answer to an interrupt."""
    _resumed.set(isinstance(given, Command) and given.resume is not None)


def is_resuming() -> bool:
    """Return whether the run that starts here continues after an interrupt."""
    return _resumed.get()


def ids_after(checkpoint: str | None, *, alone: bool) -> None:
    """Make the ids of new checkpoints sort after an existing checkpoint's id, if there is one.

    LangGraph takes the checkpoint with the greatest id as the latest. Ids contain the time. During
    time travel that is the recording's time, and on another machine it is that machine's time.

    With `alone`, in a session, ids that this process made earlier do not count. An id can be part
    of a request (the id of an interrupt, for example), so it must be the same as when recorded.
    """
    made_at = _time_in(checkpoint) if checkpoint else None
    if alone:
        ids._last_v6_timestamp = made_at  # noqa: SLF001 - a test fails if it moves
    elif made_at is not None:
        ids._last_v6_timestamp = max(ids._last_v6_timestamp or 0, made_at)  # noqa: SLF001


def _time_in(checkpoint: str) -> int | None:
    """Return the creation time in an id, in the id's unit.

    None if it contains no time, or an impossible one: all later ids would start from that time.
    """
    try:
        made = UUID(checkpoint)
    except ValueError:
        return None
    if made.version != 6:
        return None
    # The time is in the first half, except for the four bits of the version.
    made_at = (made.int >> 80) << 12 | (made.int >> 64) & 0x0FFF
    return made_at if made_at <= _LATEST else None
