"""Where code runs: in which step, on which lane, and in which workflow.

The framework runs agents, nodes and tools in tasks that it starts in the order of arriving answers.
So each of them takes a lane of its own name, numbered by how often it was started from the step
around it. A name holds no id: where the framework makes one up, it is cut off.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tracefork_core.adapters import (
    Lane,
    RunningStep,
    branch_lane,
    current_step,
    end_step,
    lane_here,
    values_set,
)

Values = Mapping[ContextVar[Any], object]

_ID = re.compile(
    r"[-_/: ]?\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\b|_[0-9a-f]{8}$"
)

_lane_around: ContextVar[Lane | None] = ContextVar("tracefork_maf_lane", default=None)
"""The lane of the step around: a task that runs a branch of it is named after the branch."""

_started: ContextVar[Counter[str] | None] = ContextVar("tracefork_maf_started", default=None)
"""How often each agent, node and tool was started from the step around."""

nodes_around: ContextVar[dict[str, str] | None] = ContextVar("tracefork_maf_nodes", default=None)
"""The latest step of each node of the workflow around, by the id of its executor."""

executing: ContextVar[Executing | None] = ContextVar("tracefork_maf_executing", default=None)
"""The node whose agent runs here: the step of the agent is the step of the node."""


@dataclass(frozen=True, slots=True)
class Executing:
    """A node that runs an agent: the id of its executor, and the steps that it waited for."""

    executor: str
    after: tuple[str, ...]


@dataclass(slots=True)
class Place:
    """A step that begins when its work does, and the context variables of that work."""

    kind: str
    name: str
    also: Values = field(default_factory=dict)
    is_branch: bool = True
    after: tuple[str, ...] = ()
    is_over: bool = False
    _running: RunningStep | None = None
    _values: Values = field(default_factory=dict)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Make the step current for the length of the block, and begin it if it has not begun."""
        if self.is_over:
            yield
            return
        if self._running is None:
            self._begin()
        with values_set(self._values):
            yield

    def end(self, error: BaseException | None = None) -> None:
        """End the step, once."""
        if self._running is not None and not self.is_over:
            end_step(self._running.step, error)
        self.is_over = True

    def _begin(self) -> None:
        if self.is_branch:
            take_lane(self.name)
        node = executing.get()
        after = self.after or (node.after if node else ())
        running = self._running = RunningStep.begin(self.kind, self.name, after=after)
        nodes = nodes_around.get()
        if node and nodes is not None and running.step is not None:
            nodes[node.executor] = running.step
        self._values = {
            **own_line(),
            current_step: running.step,
            executing: None,
            **self.also,
        }


def take_lane(name: str) -> None:
    """Name the lane of this task after the branch that it runs: "writer.2" for the second."""
    started = _started.get()
    if started is not None:
        started[name] += 1
        branch_lane(_lane_around.get(), f"{name}.{started[name]}")


def own_line() -> Values:
    """Return the values that begin a line of lanes here."""
    return {_lane_around: lane_here(), _started: Counter()}


def stable(name: str | None, default: str) -> str:
    """Return a name without the ids that the framework makes up, or the default."""
    return _ID.sub("", name or "") or default
