"""Name the lanes of what a framework runs in parallel: of agents, nodes and tools.

A framework runs them in tasks that it starts in the order of arriving answers. So each takes a lane
of its own name, numbered by how often it was started from the step around. A name holds no id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from tracefork_core.adapters.session_here import branch_lane, lane_here
from tracefork_core.exchange.contract import Lane

_lane_around: ContextVar[Lane | None] = ContextVar("tracefork_lane_around", default=None)
"""The lane of the step around: a task that runs a branch of it is named after the branch."""

_started: ContextVar[Counter[str] | None] = ContextVar("tracefork_started", default=None)
"""How often each branch was started from the step around."""


def own_branches() -> Mapping[ContextVar[Any], object]:
    """Return the context variables of a step whose branches are named after this lane."""
    return {_lane_around: lane_here(), _started: Counter()}


def take_lane(name: str) -> None:
    """Name the lane of this task after the branch that it runs: "writer.2" for the second."""
    branch_lane(_lane_around.get(), numbered(name))


def numbered(name: str) -> str:
    """Return the name of a branch, and how often it was started from the step around."""
    if (started := _started.get()) is None:
        return name
    started[name] += 1
    return f"{name}.{started[name]}"
