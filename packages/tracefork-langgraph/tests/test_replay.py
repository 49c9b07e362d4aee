"""A recorded agent replays without its provider, in every way to run LangGraph."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer


class State(TypedDict):
    messages: Annotated[list[Any], operator.add]


def test_an_agent_replays_as_it_was_recorded(
    agent: Any, attached: Any, drive: Any, twice: Any, kind: str, way: str
) -> None:
    """Three parallel tools and two model calls give the same results with the provider stopped."""
    graph = attached(agent(kind))
    recorded, replayed = twice(lambda: drive(graph, way))
    assert replayed == recorded
    assert any("order 17 was delivered" in str(part) for part in recorded)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "messages", "amessages"])
def test_a_bound_agent_replays_without_ambient_patching(
    agent: Any, attached: Any, drive: Any, twice: Any, kind: str, how: str, paths: Any
) -> None:
    """With ambient=False, the models that `attach` found are on the tape and answered from it."""
    graph = attached(agent(kind))
    recorded, replayed = twice(lambda: drive(graph, how), ambient=False)
    assert replayed == recorded
    assert len(paths()) == 2


def test_an_unbound_agent_is_not_on_a_tape_without_ambient_patching(
    agent: Any, drive: Any, tape: Path, paths: Any
) -> None:
    """Only binding puts it there: without `attach` the tape stays empty."""
    with tracefork.record(tape, ambient=False):
        drive(agent(), "invoke")
    assert paths() == []


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "messages"])
def test_a_subgraph_replays(model: Any, attached: Any, drive: Any, twice: Any, how: str) -> None:
    """A graph inside a graph gives the same result with the provider stopped."""
    asked = model()

    def ask(state: State) -> dict[str, Any]:
        return {"messages": [asked.invoke(state["messages"])]}

    inner = StateGraph(State).add_node("inner", ask).add_edge(START, "inner").compile()
    outer = StateGraph(State).add_node("outer", inner).add_edge(START, "outer").compile()
    recorded, replayed = twice(lambda: drive(attached(outer), how, "hello"))
    assert replayed == recorded


def test_invoke_and_stream_are_different_requests(
    agent: Any, attached: Any, drive: Any, tape: Path
) -> None:
    """A run recorded with `invoke` diverges at /stream when tokens are streamed."""
    graph = attached(agent())
    with tracefork.record(tape):
        drive(graph, "invoke")
    with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(tape):
        drive(graph, "messages")
    pointers = caught.value.divergence.candidates[0].reason
    assert "/stream" in (caught.value.divergence.pointer or "") + pointers


def test_attach_does_not_change_the_digest(attached: Any, drive: Any, tmp_path: Path) -> None:
    """Two recordings of the same bytes, with and without `attach`, have one digest."""
    digests = []
    for name in ("plain", "attached"):
        with ProviderServer() as server:
            model = ChatOpenAI(model="m", base_url=f"{server.url}/v1", api_key="none")
            graph = create_agent(model, [])
            if name == "attached":
                attached(graph)
            with tracefork.record(tmp_path / name) as run:
                drive(graph, "invoke")
            digests.append(run.digest)
    assert digests[0] == digests[1]
