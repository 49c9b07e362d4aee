"""A tool that asks a person: it ends with an interrupt, and runs again when there is an answer.

Both runs are exchanges. What was answered so far is part of what is asked, so an answer that is
another one than recorded is a divergence. A replay asks again, by `interrupt` itself: LangGraph
counts a task's interrupts to know which answer is whose, and their ids change from run to run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import interrupt

from tracefork_core import UsageError
from tracefork_langgraph.tool_values import Outcome

_SCRATCHPAD = "__pregel_scratchpad"
_told: WeakKeyDictionary[Any, list[object]] = WeakKeyDictionary()
"""What tasks were resumed with, by the function that only the scratchpads of one task share."""


def answers() -> list[object]:
    """Return what the interrupts of the task that runs here were answered when it began."""
    pad = _scratchpad()
    if pad is None:
        return []
    # Known from the first call on: another one beside it may take an answer at any time.
    return list(_told.setdefault(pad.get_null_resume, _answers_of(pad)))


def _answers_of(pad: Any) -> list[object]:
    # The latest answer is told on after somebody took it, and is among the others then.
    latest = pad.get_null_resume(consume=False)
    is_among_them = bool(pad.resume) and pad.resume[-1] is latest
    return [*pad.resume, *([] if latest is None or is_among_them else [latest])]


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the interrupts that are asked inside, answered or not, into the list it gives."""
    asked: list[int] = []
    pad, config = _scratchpad(), var_child_runnable_config.get()
    if pad is None or config is None:
        yield asked
        return

    def count() -> int:
        asked.append(index := pad.interrupt_counter())
        return int(index)

    counting = dataclasses.replace(pad, interrupt_counter=count)
    inside: Any = {**config, "configurable": {**config["configurable"], _SCRATCHPAD: counting}}
    token = var_child_runnable_config.set(inside)
    try:
        yield asked
    finally:
        var_child_runnable_config.reset(token)


def interrupted(tool: str, error: GraphBubbleUp, asked: list[int]) -> Outcome:
    """Return what goes onto the tape of a tool that ended by control flow.

    Raises:
        UsageError: it is none that a replay could do again.
    """
    if isinstance(error, GraphInterrupt) and asked and len(error.args[0]) == 1:
        (one,) = error.args[0]
        return Outcome(len(asked) - 1, asks=(one.value, getattr(one, "response_schema", None)))
    raise UsageError(
        f"tracefork: the tool {tool} ended by a {type(error).__name__} of a graph that it runs, "
        "which no tape holds. Leave it to run: metadata={'tracefork': 'live'}."
    ) from error


def ask_again(outcome: Outcome) -> None:
    """Do again what a recorded tool did to its task's interrupts; raise the one it ended with."""
    for _ in range(outcome.answered):
        interrupt(None)
    if outcome.asks is not None:
        value, schema = outcome.asks
        interrupt(value, **({} if schema is None else {"response_schema": schema}))


def _scratchpad() -> Any:
    config = var_child_runnable_config.get() or {}
    return (config.get("configurable") or {}).get(_SCRATCHPAD)
