"""A tool that asks a person ends with an interrupt and resumes with an answer, also replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import ParentCommand
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import tracefork_core as tracefork
from tracefork_langgraph import bind_tool

THREAD = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def refund(done: Any) -> Any:
    @tool
    def refund(order: int) -> str:
        """Ask twice, then pay."""
        done.append("asked")
        sure = interrupt({"refund": order})
        euros = interrupt("how much?")
        done.append("paid")
        return f"{sure}: {euros} euros for order {order}"

    return refund


def talk(calling: Any, calls: Any, tools: Any, answers: list[str]) -> list[object]:
    """Run a graph with a new checkpointer, answer its questions, and return what was said."""
    graph = calling(*tools, checkpointer=InMemorySaver(), handle_tool_errors=True)
    came = graph.invoke(calls(*((it.name, {"order": 17}) for it in tools)), THREAD)
    heard: list[object] = []
    for answer in answers:
        heard += [it.value for it in came["__interrupt__"]]
        came = graph.invoke(Command(resume=answer), THREAD)
    return heard + [m.content for m in came["messages"] if m.type == "tool"]


def test_each_run_of_an_interrupted_tool_is_an_exchange(
    calling: Any, calls: Any, twice: Any, refund: Any, done: Any, exchanges: Any
) -> None:
    """Three runs, two of which asked, are three exchanges. None of them runs again."""
    recorded, replayed = twice(lambda: (talk(calling, calls, [refund], ["yes", "9"]), done.now()))
    assert recorded[0] == [{"refund": 17}, "how much?", "yes: 9 euros for order 17"]
    assert recorded[1] == ["asked"] * 3 + ["paid"]
    assert replayed == (recorded[0], [])
    assert exchanges() == [
        ("refund", {"order": 17}),
        ("refund", {"order": 17, "resumed with": ["yes"]}),
        ("refund", {"order": 17, "resumed with": ["yes", "9"]}),
    ]


def test_another_answer_is_a_divergence(calling: Any, calls: Any, tape: Path, refund: Any) -> None:
    """The answers of a person are part of the tool's request."""
    with tracefork.record(tape):
        talk(calling, calls, [refund], ["yes", "9"])
    with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(tape):
        talk(calling, calls, [refund], ["yes", "10"])
    found = caught.value.divergence
    assert (found.pointer, found.recorded, found.actual) == ("/resumed with/1", "9", "10")


def test_interrupt_is_not_a_failure(
    calling: Any, calls: Any, tape: Path, refund: Any, done: Any
) -> None:
    """A recording that ends with an open question replays up to it."""
    with tracefork.record(tape):
        graph = calling(refund, checkpointer=InMemorySaver())
        first = graph.invoke(calls(("refund", {"order": 17})), THREAD)
    with tracefork.Tape.open(tape) as opened:
        assert [(one.end, one.failure) for one in opened.exchanges] == [("eof", None)]
        assert [step.error for step in opened.steps] == [None] * len(opened.steps)
    done.now()
    with tracefork.replay(tape):
        graph = calling(refund, checkpointer=InMemorySaver())
        again = graph.invoke(calls(("refund", {"order": 17})), THREAD)
    assert [it.value for it in again["__interrupt__"]] == [{"refund": 17}]
    assert [it.value for it in first["__interrupt__"]] == [{"refund": 17}]
    assert done == []


def test_a_node_that_asks_after_its_tool_gets_its_own_answer(tape: Path, done: Any) -> None:
    """A replayed tool consumes as many answers as when it was recorded."""

    @tool
    def confirm(order: int) -> str:
        """Ask."""
        done.append("asked")
        return f"{interrupt('sure?')} for {order}"

    bind_tool(confirm)

    def node(_: object) -> dict[str, Any]:
        said = confirm.invoke({"order": 17})
        return {"messages": [("user", f"{said}, {interrupt('really?')}")]}

    builder = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")

    def run() -> str:
        graph = builder.compile(checkpointer=InMemorySaver())
        graph.invoke({"messages": []}, THREAD)
        graph.invoke(Command(resume="yes"), THREAD)
        return str(graph.invoke(Command(resume="really"), THREAD)["messages"][-1].content)

    with tracefork.record(tape):
        recorded = run()
    done.now()
    with tracefork.replay(tape):
        assert run() == recorded == "yes for 17, really"
    assert done == []


def test_answer_is_listed_once_for_each_tool_of_a_task(
    tape: Path, done: Any, exchanges: Any
) -> None:
    """A tool that starts after another has consumed the answer has it in its request too."""

    @tool
    def confirm(order: int) -> str:
        """Ask."""
        done.append("asked")
        return f"{interrupt('sure?')} for {order}"

    @tool
    def look_up(order: int) -> str:
        """Ask nobody."""
        return f"order {order}"

    tools = [bind_tool(confirm), bind_tool(look_up)]

    def node(_: object) -> dict[str, Any]:
        return {"messages": [("user", it.invoke({"order": 17})) for it in tools]}

    builder = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")
    graph = builder.compile(checkpointer=InMemorySaver())
    with tracefork.record(tape):
        graph.invoke({"messages": []}, THREAD)
        graph.invoke(Command(resume="yes"), THREAD)
    answered = {"order": 17, "resumed with": ["yes"]}
    assert exchanges() == [
        ("confirm", {"order": 17}),
        ("confirm", answered),
        ("look_up", answered),
    ]


def test_control_flow_of_an_inner_graph_is_refused(tape: Path) -> None:
    """A replay could not repeat it. The error says how to keep the tool live."""

    @tool
    def leave() -> str:
        """Leave the graph."""
        raise ParentCommand(Command(goto="elsewhere"))

    bind_tool(leave)
    with pytest.raises(
        tracefork.UsageError, match=r"ended with a ParentCommand.*'tracefork': 'live'"
    ):
        with tracefork.record(tape):
            leave.invoke({})
