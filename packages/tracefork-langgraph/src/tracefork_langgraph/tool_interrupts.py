"""Tools that ask a person: one ends with an interrupt and runs again when it has the answer.

Both runs are exchanges. The answers given so far are part of the request, so an answer that differs
from the recorded one is a divergence. A replay calls `interrupt` again: LangGraph counts a task's
interrupts to match answers to questions, and their ids change from run to run.
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
"""The answers that tasks were resumed with, keyed by a function that only the scratchpads of one
task share."""


def answers() -> list[object]:
    """Return the answers that the current task's interrupts had when the task started."""
    pad = _scratchpad()
    if pad is None:
        return []
    # Remember them at the first call: a tool that runs beside it may consume an answer any time.
    return list(_told.setdefault(pad.get_null_resume, _answers_of(pad)))


def _answers_of(pad: Any) -> list[object]:
    # The latest answer is still returned after it was consumed; then it is in `resume` too.
    latest = pad.get_null_resume(consume=False)
    is_among_them = bool(pad.resume) and pad.resume[-1] is latest
    return [*pad.resume, *([] if latest is None or is_among_them else [latest])]


@contextmanager
def counted() -> Iterator[list[int]]:
    """Give a list that collects the index of each interrupt inside, answered or not."""
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
    """Return what to record of a tool that ended with control flow instead of a result.

    Raises:
        UsageError: a replay could not repeat this control flow.
    """
    if isinstance(error, GraphInterrupt) and asked and len(error.args[0]) == 1:
        (interruption,) = error.args[0]
        return Outcome(
            len(asked) - 1,
            asks=(interruption.value, getattr(interruption, "response_schema", None)),
        )
    raise UsageError(
        f"tracefork: the tool {tool} ended with a {type(error).__name__} of a graph that it runs. "
        "A tape cannot store that. Give the tool metadata={'tracefork': 'live'} to run it live."
    ) from error


def ask_again(outcome: Outcome) -> None:
    """Repeat what a recorded tool did to its task's interrupts; raise the one it ended with."""
    for _ in range(outcome.answered):
        interrupt(None)
    if outcome.asks is not None:
        value, schema = outcome.asks
        interrupt(value, **({} if schema is None else {"response_schema": schema}))


def _scratchpad() -> Any:
    config = var_child_runnable_config.get() or {}
    return (config.get("configurable") or {}).get(_SCRATCHPAD)
