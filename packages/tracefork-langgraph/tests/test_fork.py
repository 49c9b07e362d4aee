"""A run of a graph can be forked at a node, by the node's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

import tracefork_core as tracefork
from tracefork_langgraph import attach


class State(TypedDict, total=False):
    plan: str
    draft: str
    answer: str


def writer(model: Callable[..., Any]) -> Any:
    """Compile a graph of three nodes, each of which sends the result of the one before it."""
    asked = model()
    builder = StateGraph(State)
    builder.add_node("planner", lambda _: {"plan": asked.invoke("plan it").content})
    builder.add_node("drafter", lambda s: {"draft": asked.invoke(f"draft {s['plan']}").content})
    builder.add_node("editor", lambda s: {"answer": asked.invoke(f"edit {s['draft']}").content})
    builder.add_edge(START, "planner").add_edge("planner", "drafter").add_edge("drafter", "editor")
    return attach(builder.compile())


def test_a_graph_is_forked_at_a_node(model: Callable[..., Any], tape: Path) -> None:
    """The node before is answered from the tape, this one gets a new answer, the next is live."""
    graph = writer(model)
    with tracefork.record(tape):
        recorded = graph.invoke({})
    with tracefork.fork(tape, at="drafter", replace="a shorter draft") as branch:
        forked = graph.invoke({})
    assert (forked["plan"], forked["draft"]) == (recorded["plan"], "a shorter draft")
    assert (branch.at, branch.replayed, branch.given, branch.live) == (1, 1, 1, 1)
    with tracefork.replay(branch.path):
        assert graph.invoke({}) == forked
    with tracefork.Tape.open(branch.path) as written:
        names = [written.step_path(one.step) for one in written.exchanges]
    assert [next(n for n in path if n in ("planner", "drafter", "editor")) for path in names] == [
        "planner",
        "drafter",
        "editor",
    ]
