"""The saver tells a session why LangGraph asks: to run, resume, look or list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from tracefork_core.checkpoints.store import CheckpointFile
from tracefork_langgraph import TapeSaver, saver

Make = Callable[..., Any]


class Listening(CheckpointFile):
    """A file of threads that keeps the calls it gets."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.heard: list[tuple[str, str, str | None]] = []

    def called(self, call: str, thread: str, at: str | None) -> None:
        self.heard.append((call, thread, at))


@pytest.fixture
def listening(path: Path, monkeypatch: pytest.MonkeyPatch) -> Listening:
    """The store of all savers in the test."""
    store = Listening(path)
    monkeypatch.setattr(saver, "checkpoints", lambda _: store)
    return store


def test_runs_looks_and_lists_are_reported(
    listening: Listening, path: Path, chain: Make, on: Make
) -> None:
    """Once each, with the checkpoint that was named. LangGraph's own lookups are not reported."""
    graph = chain(TapeSaver(path))
    graph.invoke({"messages": []}, on())
    assert listening.heard == [("run", "t", None)]
    past = [one.config for one in graph.get_state_history(on())][2]
    assert listening.heard[1:] == [("list", "t", None)]
    at = past["configurable"]["checkpoint_id"]
    graph.get_state(past)
    graph.get_state(on())
    assert listening.heard[2:] == [("look", "t", at), ("look", "t", None)]
    graph.invoke(None, past)
    assert listening.heard[4:] == [("run", "t", at)]


async def test_async_runs_and_looks_are_reported_too(
    listening: Listening, path: Path, chain: Make, on: Make
) -> None:
    """The saver reports them from its own thread."""
    graph = chain(TapeSaver(path))
    await graph.ainvoke({"messages": []}, on("u"))
    await graph.aget_state(on("u"))
    assert listening.heard == [("run", "u", None), ("look", "u", None)]


def test_runs_of_subgraphs_are_not_reported(
    listening: Listening, path: Path, chain: Make, on: Make
) -> None:
    """Only the outermost graph is run by the program."""
    inner = chain(None, "xy")
    builder = StateGraph(inner.builder.state_schema).add_node("sub", inner).add_edge(START, "sub")
    builder.compile(checkpointer=TapeSaver(path)).invoke({"messages": []}, on())
    assert listening.heard == [("run", "t", None)]
