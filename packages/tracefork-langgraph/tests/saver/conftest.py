"""Savers on files, and graphs that use them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from tracefork_langgraph import TapeSaver


class State(TypedDict, total=False):
    """The state of the graphs here."""

    messages: Annotated[list[AnyMessage], add_messages]
    seen: Annotated[list[str], operator.add]
    name: str


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the threads."""
    return tmp_path / "threads.tape"


@pytest.fixture
def saver(path: Path) -> TapeSaver:
    """A saver on an empty file."""
    return TapeSaver(path)


@pytest.fixture
def chain() -> Callable[..., Any]:
    """Make a graph of some nodes in a row, each of which adds its name."""

    def make(checkpointer: object, names: str = "abc", **compiled: Any) -> Any:
        builder = StateGraph(State)
        for name in names:
            builder.add_node(name, _speaker(name))
        for first, second in zip([START, *names], [*names, END], strict=True):
            builder.add_edge(first, second)
        return builder.compile(checkpointer=checkpointer, **compiled)

    return make


def _speaker(name: str) -> Callable[[State], State]:
    def speak(state: State) -> State:
        said = len(state.get("seen", []))
        return {"messages": [AIMessage(f"{name} {said}")], "seen": [name], "name": name}

    return speak


@pytest.fixture
def on() -> Callable[..., Any]:
    """Return the config of a thread."""

    def config(thread: str = "t", **configurable: object) -> Any:
        return {"configurable": {"thread_id": thread, **configurable}}

    return config
