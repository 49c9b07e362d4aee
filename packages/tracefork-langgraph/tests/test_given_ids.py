"""A message that a process keeps comes to each run as it came to the run that was recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

import tracefork_core as tracefork
from tracefork_langgraph import attach
from tracefork_testkit import ProviderServer


@pytest.fixture(params=["ambient", "attached"])
def graph(request: pytest.FixtureRequest, model: Callable[..., Any]) -> Any:
    """A graph whose second node says something without an id, which the model is told then."""
    asked = model(max_retries=0)
    builder = StateGraph(MessagesState)
    builder.add_node("ask", lambda state: {"messages": [asked.invoke(state["messages"])]})
    builder.add_node("doubt", lambda _: {"messages": [("user", "Are you sure?")]})
    builder.add_node("again", lambda state: {"messages": [asked.invoke(state["messages"])]})
    builder.add_edge(START, "ask").add_edge("ask", "doubt").add_edge("doubt", "again")
    made = builder.compile()
    return attach(made) if request.param == "attached" else made


@pytest.fixture
def question() -> dict[str, Any]:
    """What the process keeps."""
    return {"messages": [HumanMessage("Where is order 17?")]}


def _ids(came: dict[str, Any]) -> list[str | None]:
    """Return the ids that LangGraph gave: those of what models say are drawn past the tape."""
    return [one.id for one in came["messages"] if one.type == "human"]


def _replays(tape: Path, graph: Any, question: Any, recorded: Any) -> None:
    with tracefork.replay(tape) as run:
        came = graph.invoke(question)
    assert [one.text for one in came["messages"]] == [one.text for one in recorded["messages"]]
    assert _ids(came) == _ids(recorded)
    assert run.digest == run.tape.digest


def test_a_question_that_was_asked_before_replays(
    graph: Any, question: Any, tape: Path, server: ProviderServer
) -> None:
    """Not only the first time: the id that the recorded run gave it is drawn again each time."""
    with tracefork.record(tape):
        recorded = graph.invoke(question)
    server.stop()
    for _ in range(3):
        _replays(tape, graph, question, recorded)


def test_a_question_that_is_recorded_again_is_as_it_is(
    graph: Any, question: Any, tape: Path, tmp_path: Path, server: ProviderServer
) -> None:
    """A second recording finds the id of the first, as a second run does; both replay."""
    second = tmp_path / "second.tape"
    with tracefork.record(tape):
        recorded = graph.invoke(question)
    with tracefork.record(second):
        again = graph.invoke(question)
    assert _ids(again)[0] == _ids(recorded)[0]
    server.stop()
    for _ in range(2):
        _replays(second, graph, question, again)
        _replays(tape, graph, question, recorded)


def test_a_tape_that_is_written_anew_counts(
    graph: Any, question: Any, tape: Path, server: ProviderServer
) -> None:
    """Of a tape in the place of another one, what it was recorded with."""
    with tracefork.record(tape):
        graph.invoke(question)
    with tracefork.record(tape, overwrite=True):
        recorded = graph.invoke(question)
    server.stop()
    _replays(tape, graph, question, recorded)


def test_a_question_that_is_forked_again_and_again(graph: Any, question: Any, tape: Path) -> None:
    """Each fork asks up to its point what was recorded, and its branch replays."""
    with tracefork.record(tape):
        graph.invoke(question)
    for at in (1, 0, 1):
        with tracefork.fork(tape, at) as branch:
            forked = graph.invoke(question)
        assert (branch.replayed, branch.live) == (at, 2 - at)
        _replays(branch.path, graph, question, forked)


def test_an_id_that_the_program_gives_stays(
    graph: Any, question: Any, tape: Path, server: ProviderServer
) -> None:
    """What LangGraph gave is taken back, and nothing else."""
    with tracefork.record(tape):
        graph.invoke(question)
    server.stop()
    question["messages"][0].id = "mine"
    with tracefork.replay(tape):
        assert _ids(graph.invoke(question))[0] == "mine"


def test_a_second_turn_in_one_session_finds_the_id_of_the_first(
    graph: Any, question: Any, tape: Path, server: ProviderServer
) -> None:
    """As in a run without a session: what is given to a graph twice there has one id."""
    with tracefork.record(tape):
        recorded = [_ids(graph.invoke(question)) for _ in range(2)]
    assert recorded[0][0] == recorded[1][0]
    server.stop()
    with tracefork.replay(tape):
        assert [_ids(graph.invoke(question)) for _ in range(2)] == recorded
