"""Where this code runs in a graph: from which checkpoint, and whether the run was resumed.

The config of the running task says it, in every thread and task that LangGraph starts; a thread of
the agent's own knows nothing of it.
"""

from __future__ import annotations

from contextvars import ContextVar
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.base import id as ids
from langgraph.types import Command

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


def ids_after(checkpoint: str) -> None:
    """Let the ids of new checkpoints sort after that of one there is.

    They hold the time, which is that of the recording for who travels in it, and of another machine
    for who goes on there. LangGraph takes the latest one by its id.
    """
    try:
        made = UUID(checkpoint)
    except ValueError:
        return
    # Of a version 6, the time is in the first half, but for the four bits of the version.
    made_at = (made.int >> 80) << 12 | (made.int >> 64) & 0x0FFF
    last = ids._last_v6_timestamp  # noqa: SLF001 - a test says so if it moves
    ids._last_v6_timestamp = max(last or 0, made_at)  # noqa: SLF001
