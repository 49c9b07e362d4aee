"""Where code runs: in which step, on which lane, and in which workflow.

A name holds no id: where the framework makes one up, it is cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field

from tracefork_core.adapters import (
    RunningStep,
    Values,
    own_branches,
    session_checked,
    take_lane,
)

_ID = re.compile(
    r"[-_/: ]?\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\b|_[0-9a-f]{8}$"
)

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

    @contextmanager
    def working(self, *, ends: bool = False) -> Iterator[None]:
        """Make the step current for the length of the block, and begin it if it has not begun.

        An error ends the step, and `ends` says that the block does. The session's error is raised
        in place of another.
        """
        with session_checked():
            try:
                with self._current():
                    yield
            except BaseException as error:
                self._end(error)
                raise
            if ends:
                self._end()

    def _current(self) -> AbstractContextManager[None]:
        if self.is_over:
            return nullcontext()
        if self._running is None:
            self._running = self._begin()
        return self._running.working()

    def _end(self, error: BaseException | None = None) -> None:
        if self._running is not None and not self.is_over:
            self._running.end(error)
        self.is_over = True

    def _begin(self) -> RunningStep:
        if self.is_branch:
            take_lane(self.name)
        node = executing.get()
        values = {**own_branches(), executing: None, **self.also}
        after = self.after or (node.after if node else ())
        running = RunningStep.begin(self.kind, self.name, values, after=after)
        nodes = nodes_around.get()
        if node and nodes is not None and running.step is not None:
            nodes[node.executor] = running.step
        return running


def stable(name: str | None, default: str) -> str:
    """Return a name without the ids that the framework makes up, or the default."""
    return _ID.sub("", name or "") or default
