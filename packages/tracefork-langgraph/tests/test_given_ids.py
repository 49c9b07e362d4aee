"""A message that a process keeps reaches each run as it reached the recorded run."""

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
    """A graph whose second node adds a message without an id, which the model then gets."""
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
    """The input that the process keeps."""
    return {"messages": [HumanMessage("Where is order 17?")]}


def _ids(came: dict[str, Any]) -> list[str | None]:
    """Return the ids that LangGraph gave to questions."""
    return [one.id for one in came["messages"] if one.type == "human"]


def _replays(tape: Path, graph: Any, question: Any, recorded: Any) -> None:
    with tracefork.replay(tape) as run:
        came = graph.invoke(question)
    assert [one.text for one in came["messages"]] == [one.text for one in recorded["messages"]]
    assert _ids(came) == _ids(recorded)
    assert run.digest == run.tape.digest


def test_question_of_an_earlier_run_replays_repeatedly(
    graph: Any, question: Any, tape: Path, server: ProviderServer
) -> None:
    """Each replay draws again the id that the recorded run gave to the question."""
    with tracefork.record(tape):
        recorded = graph.invoke(question)
    server.stop()
    for _ in range(3):
        _replays(tape, graph, question, recorded)


def test_second_recording_gets_the_question_with_its_id(
    graph: Any, question: Any, tape: Path, tmp_path: Path, server: ProviderServer
) -> None:
    """As in a run without a session. Both recordings replay."""
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


def test_overwritten_tape_replays_as_last_recorded(
    graph: Any, question: Any, tape: Path, server: ProviderServer
) -> None:
    """The question had no id in the first recording, and has one in the second."""
    with tracefork.record(tape):
        graph.invoke(question)
    with tracefork.record(tape, overwrite=True):
        recorded = graph.invoke(question)
    server.stop()
    _replays(tape, graph, question, recorded)


def test_repeated_forks_of_a_question_match_and_replay(
    graph: Any, question: Any, tape: Path
) -> None:
    """Each fork sends the recorded requests up to its point, and its branch replays."""
    with tracefork.record(tape):
        graph.invoke(question)
    for at in (1, 0, 1):
        with tracefork.fork(tape, at) as branch:
            forked = graph.invoke(question)
        assert (branch.replayed, branch.live) == (at, 2 - at)
        _replays(branch.path, graph, question, forked)


def test_id_set_by_the_program_stays(
    graph: Any, question: Any, tape: Path, server: ProviderServer
) -> None:
    """Only the id that LangGraph gave is taken back."""
    with tracefork.record(tape):
        graph.invoke(question)
    server.stop()
    question["messages"][0].id = "mine"
    with tracefork.replay(tape):
        assert _ids(graph.invoke(question))[0] == "mine"


def test_second_turn_in_a_session_keeps_the_id_of_the_first(
    graph: Any, question: Any, tape: Path, server: ProviderServer
) -> None:
    """As in a run without a session: a message that is passed twice has one id."""
    with tracefork.record(tape):
        recorded = [_ids(graph.invoke(question)) for _ in range(2)]
    assert recorded[0][0] == recorded[1][0]
    server.stop()
    with tracefork.replay(tape):
        assert [_ids(graph.invoke(question)) for _ in range(2)] == recorded


def test_an_agent_that_sends_the_id_of_a_message_replays(
    model: Callable[..., Any], tape: Path, server: ProviderServer
) -> None:
    """LangChain makes the ids of answers in Rust, from the id of the run."""
    asked = model(max_retries=0)

    def again(state: MessagesState) -> dict[str, Any]:
        return {"messages": [asked.invoke(f"Say more about {state['messages'][-1].id}.")]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", lambda state: {"messages": [asked.invoke(state["messages"])]})
    builder.add_node("again", again)
    builder.add_edge(START, "ask").add_edge("ask", "again")
    graph = builder.compile()
    with tracefork.record(tape):
        recorded = graph.invoke({"messages": [("user", "Where is order 17?")]})
    server.stop()
    with tracefork.replay(tape) as run:
        came = graph.invoke({"messages": [("user", "Where is order 17?")]})
    ids = [one.id for one in came["messages"]]
    assert ids == [one.id for one in recorded["messages"]]
    assert ids[1].startswith("lc_run--")
    assert (run.entropy_misses, run.clock_misses) == (0, 0)
