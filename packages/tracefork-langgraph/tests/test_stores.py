"""Replays and forks do not share an `InMemoryStore`, LangGraph's long-term memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver, arerun, attach, fork, rerun
from tracefork_testkit import ProviderServer

THREAD: Any = {"configurable": {"thread_id": "T"}}
TOPICS = ("topics",)


class State(TypedDict, total=False):
    topic: str
    said: str


def _question(topic: str, found: list[Any]) -> str:
    return f"{topic}, after {sorted(one.value['name'] for one in found)}"


@pytest.fixture
def make(model: Callable[..., Any], tape: Path) -> Callable[[], Any]:
    """Make a graph that stores its topics, in a store that already holds one."""
    asked = model(max_retries=0)

    def remember(state: State, *, store: BaseStore) -> State:
        topic = state["topic"]
        said = asked.invoke(_question(topic, store.search(TOPICS))).text
        store.put(TOPICS, topic, {"name": topic})
        return {"said": said}

    def make() -> Any:
        store = InMemoryStore()
        store.put(TOPICS, "zero", {"name": "zero"})
        builder = StateGraph(State).add_node("remember", remember).add_edge(START, "remember")
        return attach(builder.compile(checkpointer=TapeSaver(tape), store=store))

    return make


@pytest.fixture(params=["sync", "async"])
def again(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    """`rerun`, sync or async."""
    with asyncio.Runner() as runner:
        yield rerun if request.param == "sync" else lambda graph: runner.run(arerun(graph))


def _record(graph: Any, tape: Path) -> Any:
    with tracefork.record(tape):
        graph.invoke({"topic": "one"}, THREAD)
        return graph.invoke({"topic": "two"}, THREAD)


def test_replay_and_fork_start_with_the_store_of_the_program(
    make: Callable[[], Any], again: Callable[[Any], Any], tape: Path, server: ProviderServer
) -> None:
    """Within one process they do as they would in a process each."""
    output = _record(make(), tape)
    graph = make()
    for _ in range(2):
        with tracefork.replay(tape):
            assert again(graph) == output
        with tracefork.fork(tape, 0) as branch:
            again(graph)
        assert branch.live == 2
        assert server.requests[-1].json()["messages"][-1]["content"] == "two, after ['one', 'zero']"
    assert [one.key for one in graph.store.search(TOPICS)] == ["zero"]


def test_store_is_not_restored_to_a_checkpoint(
    make: Callable[[], Any], tape: Path, server: ProviderServer
) -> None:
    """A fork that verifies its request diverges; one that starts live does not notice."""
    _record(make(), tape)
    with pytest.raises(tracefork.DivergenceError, match="after"), tracefork.fork(tape, 1):
        rerun(make())
    assert fork(tape, make(), at="remember:2").live == 1
    assert server.requests[-1].json()["messages"][-1]["content"] == "two, after ['zero']"


def test_store_keeps_its_data_in_the_attributes_that_are_copied() -> None:
    """stores.py copies `_data` and `_vectors`."""
    store = InMemoryStore()
    store.put(TOPICS, "zero", {"name": "zero"})
    assert store._data[TOPICS]["zero"].value == {"name": "zero"}
    assert not store._vectors
