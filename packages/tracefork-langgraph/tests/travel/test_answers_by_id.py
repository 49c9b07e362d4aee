"""Answers addressed by interrupt id are given again, under the ids of the new run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.graph import START as BEGIN
from langgraph.graph import StateGraph
from langgraph.types import Command, Send, interrupt

import tracefork_core as tracefork
from tracefork_langgraph import arerun, rerun
from tracefork_testkit import ProviderServer

from .graphs import Node, Ran, State, both
from .program import START, THREAD, Program, Shape


def _person(name: str) -> Callable[[Any], dict[str, Any]]:
    def ask(state: Any) -> dict[str, Any]:
        mine = f"{name} {state['i']}" if "i" in state else name
        return {"said": [f"{mine}: {interrupt(f'{mine}?')}"]}

    return ask


def _side_by_side(model: Any, ran: Ran) -> StateGraph[State]:
    """A node that asks a model, two parallel nodes that ask a person, and a node after them."""
    builder = StateGraph(State).add_node("first", both(Node("first", model, ran, "first")))
    builder.add_node("last", both(Node("last", model, ran, "last"))).add_edge(BEGIN, "first")
    for name in ("left", "right"):
        builder.add_node(name, _person(name)).add_edge("first", name)
    return builder.add_edge(["left", "right"], "last")


def _sent(model: Any, ran: Ran) -> StateGraph[State]:
    """Three copies of one node that ask a person."""
    builder = StateGraph(State).add_node("first", both(Node("first", model, ran, "first")))
    builder.add_node("last", both(Node("last", model, ran, "last"))).add_edge(BEGIN, "first")
    builder.add_node("copy", _person("copy")).add_edge("copy", "last")
    return builder.add_conditional_edges(
        "first", lambda _: [Send("copy", {"i": i}) for i in range(3)], ["copy"]
    )


def _inside(model: Any, ran: Ran) -> StateGraph[State]:
    """Two copies of a graph in which two parallel nodes ask a person."""
    inner = StateGraph(State)
    for name in ("left", "right"):
        inner.add_node(name, _person(name)).add_edge(BEGIN, name)
    sub = inner.compile()
    builder = StateGraph(State).add_node("first", both(Node("first", model, ran, "first")))
    builder.add_node("last", both(Node("last", model, ran, "last"))).add_edge(BEGIN, "first")
    for name in ("one", "two"):
        builder.add_node(name, sub).add_edge("first", name)
    return builder.add_edge(["one", "two"], "last")


def _at_once(program: Program) -> Any:
    program.run(START)
    waiting = program.graph.get_state(THREAD).interrupts
    return program.run(Command(resume={one.id: n for n, one in enumerate(waiting)}))


def _one_by_one(program: Program) -> Any:
    """Answer the questions one by one, the last one first."""
    output = program.run(START)
    for n in range(1, 5):
        if waiting := sorted(output.get("__interrupt__", ()), key=lambda one: str(one.value)):
            output = program.run(Command(resume={waiting[-1].id: f"answer {n}"}))
    return output


def _again(program: Program) -> Any:
    if program.loop is not None:
        return program.loop.run(arerun(program.graph))
    return rerun(program.graph)


@pytest.mark.parametrize(("shape", "asked"), [(_side_by_side, 2), (_sent, 3), (_inside, 4)])
@pytest.mark.parametrize("does", [_at_once, _one_by_one])
def test_each_question_gets_its_recorded_answer(
    shape: Shape,
    asked: int,
    does: Callable[[Program], Any],
    program: Callable[[Shape], Program],
    server: ProviderServer,
) -> None:
    """A fork from the start has other task ids; a fork after the answers asks no questions."""
    made = program(shape)
    with tracefork.record(made.tape):
        output = does(made)
    answered = [said for said in output["said"] if said.split(":")[0] not in ("first", "last")]
    assert len(answered) == asked
    for at, live in ((0, 2), (1, 1)):
        with tracefork.fork(made.tape, at) as branch:
            forked = _again(made)
        assert [one for one in forked["said"] if one in answered] == answered
        assert branch.live == live
        with tracefork.replay(branch.path):
            assert _again(made) == forked
    server.stop()
    with tracefork.replay(made.tape) as run:
        assert _again(made) == output
    assert run.digest == run.tape.digest


@pytest.mark.parametrize("loop", ["sync"], indirect=True)
def test_a_second_question_of_a_task_is_answered_by_its_id(
    program: Callable[[Shape], Program], server: ProviderServer, loop: None
) -> None:
    """LangGraph stores the earlier answers of a task together with the new one."""

    def twice(model: Any, ran: Ran) -> StateGraph[State]:
        def ask(_: State) -> dict[str, Any]:
            return {"said": [interrupt("sure?"), interrupt("how many?")]}

        builder = StateGraph(State).add_node("ask", ask).add_edge(BEGIN, "ask")
        return builder.add_node("last", both(Node("last", model, ran))).add_edge("ask", "last")

    made = program(twice)
    with tracefork.record(made.tape):
        output = _one_by_one(made)
    server.stop()
    assert output["said"][:2] == ["answer 1", "answer 2"]
    with tracefork.replay(made.tape):
        assert _again(made) == output
