"""A program that runs a graph whose checkpointer is the tape of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.graph import StateGraph

Shape = Callable[[Any, list[str]], StateGraph[Any]]
THREAD: dict[str, Any] = {"configurable": {"thread_id": "T"}}
START: dict[str, Any] = {"said": []}


@dataclass
class Program:
    """Runs a graph, sync or async. `ran` holds the nodes of the last run, in starting order."""

    graph: Any
    tape: Path
    ran: list[str]
    loop: asyncio.Runner | None

    def run(self, given: Any = None, config: Any = THREAD, **options: Any) -> Any:
        """Run the graph on its thread, or from a checkpoint of it."""
        self.ran.clear()
        if self.loop is not None:
            return self.loop.run(self.graph.ainvoke(given, config, **options))
        return self.graph.invoke(given, config, **options)

    def states(self) -> list[Any]:
        """The states of the thread, the oldest first."""
        return list(self.graph.get_state_history(THREAD))[::-1]

    def state(self, node: str) -> Any:
        """The first state that a node ran from."""
        return next(state for state in self.states() if state.next == (node,))
