"""A fork that begins in the middle is proven up to its point, the question there included."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START as BEGIN
from langgraph.graph import StateGraph

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, arerun, attach, fork, rerun
from tracefork_testkit import ProviderServer

from .graphs import SHAPES, Node, Ran, State, five, talking
from .program import START, THREAD, Program, Shape


def _again(program: Program) -> Any:
    program.ran.clear()
    if program.loop is not None:
        return program.loop.run(arerun(program.graph))
    return rerun(program.graph)


@pytest.fixture
def edited(
    model: Callable[..., Any], program: Callable[[Shape], Program]
) -> Callable[..., Program]:
    """Record five nodes; return the program with other questions."""

    def record(**questions: str) -> Program:
        made = program(five)
        with tracefork.record(made.tape):
            made.run(START)
        graph = five(model(max_retries=0), made.ran, **questions)
        made.graph = attach(graph.compile(checkpointer=TapeSaver(made.tape)))
        return made

    return record


@pytest.mark.parametrize("at", [0, 2, 4])
def test_another_question_at_the_fork_point_diverges(
    edited: Callable[..., Program], server: ProviderServer, at: int
) -> None:
    """Nothing was changed so far: an agent that asks otherwise is another one."""
    made = edited(**{f"n{at + 1}": "something else"})
    asked = len(server.requests)
    with (
        pytest.raises(tracefork.DivergenceError, match="something else"),
        tracefork.fork(made.tape, at),
    ):
        _again(made)
    assert len(server.requests) == asked
    assert made.ran == [f"n{at + 1}"]


def test_what_is_asked_behind_the_fork_point_may_be_something_else(
    edited: Callable[..., Program], server: ProviderServer
) -> None:
    """The answer there is another one, and so may be all that comes of it."""
    made = edited(n4="something else")
    with tracefork.fork(made.tape, 2) as branch:
        _again(made)
    assert branch.live == 3


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_who_changes_the_state_may_ask_something_else(
    edited: Callable[..., Program], server: ProviderServer, loop: None
) -> None:
    """A fork of this package is there to do so, with the prompts of today."""
    made = edited(n3="something else")
    assert fork(made.tape, made.graph, at="n3").live == 3


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_what_is_not_asked_at_the_fork_point_is_told(
    model: Callable[..., Any],
    program: Callable[[Shape], Program],
    server: ProviderServer,
    loop: None,
) -> None:
    """A node that no longer asks is another one, too."""
    made = program(five)
    with tracefork.record(made.tape):
        made.run(START)

    changed = five(model(max_retries=0), made.ran)
    changed.nodes["n5"].runnable = RunnableLambda(lambda _: {"said": ["nothing"]})
    made.graph = attach(changed.compile(checkpointer=TapeSaver(made.tape)))
    with (
        pytest.raises(tracefork.DivergenceError, match="never asked"),
        tracefork.fork(made.tape, 4),
    ):
        _again(made)


@pytest.mark.parametrize("shape", [*SHAPES.values(), talking], ids=lambda shape: shape.__name__)
def test_each_fork_point_is_proven(
    shape: Shape, program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """Nodes side by side, copies, graphs in graphs, loops: all ask there what they asked."""
    made = program(shape)
    given = {"messages": []} if shape is talking else START
    with tracefork.record(made.tape):
        made.run(given)
    with tracefork.Tape.open(made.tape) as tape:
        asked = len(tape.exchanges)
    for at in range(0, asked, max(1, asked // 4)):
        with tracefork.fork(made.tape, at) as branch:
            _again(made)
        assert branch.live > 0


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_values_of_chance_in_a_question_are_drawn_anew(
    program: Callable[[Shape], Program], server: ProviderServer, tmp_path: Path, loop: None
) -> None:
    """A run that begins in the middle draws others than the recorded one did."""

    def drawing(model: Any, ran: Ran) -> StateGraph[State]:
        def ask(_: State) -> dict[str, Any]:
            ran.append("ask")
            return {"said": [model.invoke(f"order {uuid.uuid4()}").text]}

        builder = StateGraph(State).add_node("first", Node("first", model, ran, "first"))
        builder.add_edge(BEGIN, "first").add_edge("first", "ask")
        return builder.add_node("ask", ask)

    made = program(drawing)
    with tracefork.record(made.tape):
        made.run(START, THREAD)
    with tracefork.fork(made.tape, 1) as branch:
        _again(made)
    assert (made.ran, branch.live) == (["ask"], 1)
