"""The steps of a session that have begun: their ids, their parents, and which one runs here."""

from __future__ import annotations

import threading

from tracefork_core.exchange.current import current_step
from tracefork_core.tape import StepRecord


class Steps:
    """Safe to use from any thread."""

    def __init__(self) -> None:
        self._parents: dict[str, str | None] = {}
        self._ended: set[str] = set()
        self._lock = threading.Lock()

    def begin(
        self, kind: str, name: str, parent: str | None, at: int, detail: dict[str, object]
    ) -> StepRecord:
        """Give the step that begins an id and return its record."""
        with self._lock:
            step = f"s{len(self._parents)}"
            self._parents[step] = parent
        return StepRecord(step, kind, name, parent, at, detail=detail)

    def end(self, step: str) -> None:
        """Note that a step is over."""
        self._ended.add(step)

    def running(self) -> str | None:
        """Return the innermost step that runs here and has not ended.

        A framework's end callback may run in another context than its start: what it set stays
        set there, and only the end itself tells that it is over.
        """
        step = current_step.get()
        while step in self._ended:
            step = self._parents.get(step)
        return step if step in self._parents else None
