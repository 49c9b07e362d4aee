"""A fork from the middle is verified up to its point, including the request there."""

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
    """Record five nodes; return the program with other prompts."""

    def record(**questions: str) -> Program:
        made = program(five)
        with tracefork.record(made.tape):
            made.run(START)
        graph = five(model(max_retries=0), made.ran, **questions)
        made.graph = attach(graph.compile(checkpointer=TapeSaver(made.tape)))
        return made

    return record


@pytest.mark.parametrize("at", [0, 2, 4])
def test_other_request_at_the_fork_point_diverges(
    edited: Callable[..., Program], server: ProviderServer, at: int
) -> None:
    """Nothing has changed before it, so an agent that sends another request is a different one."""
    made = edited(**{f"n{at + 1}": "something else"})
    asked = len(server.requests)
    with (
        pytest.raises(tracefork.DivergenceError, match="something else"),
        tracefork.fork(made.tape, at),
    ):
        _again(made)
    assert len(server.requests) == asked
    assert made.ran == [f"n{at + 1}"]


def test_requests_after_the_fork_point_may_differ(
    edited: Callable[..., Program], server: ProviderServer
) -> None:
    """The answer at the fork point differs, so everything after it may differ too."""
    made = edited(n4="something else")
    with tracefork.fork(made.tape, 2) as branch:
        _again(made)
    assert branch.live == 3


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_fork_at_a_checkpoint_may_send_other_requests(
    edited: Callable[..., Program], server: ProviderServer, loop: None
) -> None:
    """`tracefork_langgraph.fork` exists for that: it runs live with today's prompts."""
    made = edited(n3="something else")
    assert fork(made.tape, made.graph, at="n3").live == 3


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_missing_request_at_the_fork_point_diverges(
    model: Callable[..., Any],
    program: Callable[[Shape], Program],
    server: ProviderServer,
    loop: None,
) -> None:
    """A node that no longer sends its request is a different node."""
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
def test_every_fork_point_sends_its_recorded_request(
    shape: Shape, program: Callable[[Shape], Program], server: ProviderServer
) -> None:
    """For parallel nodes, copies, nested graphs and loops."""
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
def test_fork_accepts_other_random_values_in_a_request(
    program: Callable[[Shape], Program], server: ProviderServer, tmp_path: Path, loop: None
) -> None:
    """A run that starts in the middle draws other values than the recorded run."""

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
