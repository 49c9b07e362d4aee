"""Parallel branches with equal prompts get their own recorded answers.

The provider answers equal requests differently, and at replay the branches send theirs in reverse
order. So neither content nor arrival order can tell them apart.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

BRANCHES = ["a", "b", "c", "d"]


class State(TypedDict):
    answers: Annotated[list[tuple[str, str]], operator.add]


class Queue:
    """Make threads send one after another, once all have arrived, in an order that the test sets.

    They wait for bare locks: a lane without a name gets one when it waits for an event.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()

    def expect(self, order: list[str]) -> None:
        self._order = order
        self._missing = len(order)
        self._turns = [threading.Lock() for _ in [*order, "the end"]]
        for turn in self._turns:
            turn.acquire()

    def wait(self, name: str) -> None:
        """Wait until all threads are here, and the one before `name` has sent its request."""
        self._here.place = self._order.index(name)
        with self._lock:
            self._missing -= 1
            if self._missing == 0:
                self._turns[0].release()
        assert self._turns[self._here.place].acquire(timeout=20)

    def sent(self, _: object) -> None:
        self._turns[self._here.place + 1].release()


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def ask(server: ProviderServer, model: Callable[..., Any], queue: Queue) -> Callable[[str], str]:
    """Send the same prompt for any branch, when it is the branch's turn."""
    asked = model()
    # The hook of the HTTP client runs just before its transport: the request is on its way.
    asked.root_client._client.event_hooks["request"].append(queue.sent)

    def ask(branch: str) -> str:
        queue.wait(branch)
        return str(asked.invoke("the same question").content)

    return ask


@pytest.fixture
def reversed_replay(queue: Queue, twice: Any) -> Callable[..., tuple[Any, Any]]:
    """Record with the branches in order, and replay with them in reverse order."""

    def run(action: Callable[[], Any], names: list[str]) -> tuple[Any, Any]:
        orders = iter([names, names[::-1]])

        def once() -> Any:
            queue.expect(next(orders))
            return action()

        # With randomness on tape, a lane gets its number when its thread draws, not when it sends.
        return twice(once, clock=False, entropy=False)

    return run


def four_nodes(ask: Callable[[str], str]) -> Any:
    """Compile a graph of four parallel nodes."""
    builder = StateGraph(State)
    for name in BRANCHES:
        builder.add_node(name, lambda _, name=name: {"answers": [(name, ask(name))]})
        builder.add_edge(START, name)
    return builder.compile()


def test_parallel_nodes_get_their_own_answers(
    ask: Any, attached: Any, reversed_replay: Any
) -> None:
    """Four parallel nodes with one prompt each get the answers recorded for them."""
    graph = attached(four_nodes(ask))
    recorded, replayed = reversed_replay(lambda: graph.invoke({"answers": []}), BRANCHES)
    assert replayed == recorded
    assert len({answer for _, answer in recorded["answers"]}) == 4


def test_answers_change_places_if_lanes_are_numbered_by_arrival(
    ask: Any, reversed_replay: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above: lanes get no name from the graph or from their start."""
    monkeypatch.setattr("tracefork_core.order.spawning.spawned", lambda _: None)
    monkeypatch.setattr("tracefork_langgraph.listening.is_on", lambda: False)
    graph = four_nodes(ask)
    recorded, replayed = reversed_replay(lambda: graph.invoke({"answers": []}), BRANCHES)
    assert sorted(answer for _, answer in replayed["answers"]) == sorted(
        answer for _, answer in recorded["answers"]
    )
    assert replayed != recorded


def test_a_fan_out_of_one_node_gets_its_own_answers(
    ask: Any, attached: Any, reversed_replay: Any
) -> None:
    """Twenty sends of one node with one prompt differ by their position in the fan-out."""
    names = [str(i) for i in range(20)]
    builder = StateGraph(State)
    builder.add_node("worker", lambda name: {"answers": [(name, ask(name))]})
    builder.add_conditional_edges(START, lambda _: [Send("worker", n) for n in names], ["worker"])
    graph = attached(builder.compile())
    config = {"max_concurrency": 20}
    recorded, replayed = reversed_replay(lambda: graph.invoke({"answers": []}, config), names)
    assert replayed == recorded
    assert len({answer for _, answer in recorded["answers"]}) == 20


def test_nodes_of_parallel_subgraphs_get_their_own_answers(
    ask: Any, attached: Any, reversed_replay: Any
) -> None:
    """Nodes of one name in two subgraphs differ by the nodes around them."""
    builder = StateGraph(State)
    for name in ("left", "right"):
        inner = StateGraph(State)
        inner.add_node("worker", lambda _, name=name: {"answers": [(name, ask(name))]})
        inner.add_edge(START, "worker")
        builder.add_node(name, inner.compile())
        builder.add_edge(START, name)
    graph = attached(builder.compile())
    recorded, replayed = reversed_replay(lambda: graph.invoke({"answers": []}), ["left", "right"])
    assert replayed == recorded


def test_tools_of_one_node_get_their_own_answers(
    ask: Any, attached: Any, reversed_replay: Any
) -> None:
    """Tools that one ToolNode runs in parallel differ by the ids of their calls."""

    def ask_expert(branch: str) -> str:
        """Ask an expert."""
        return ask(branch)

    calls = [{"name": "ask_expert", "args": {"branch": b}, "id": f"call_{b}"} for b in BRANCHES]
    builder = StateGraph(dict).add_node("tools", ToolNode([ask_expert])).add_edge(START, "tools")
    graph = attached(builder.compile())
    state = {"messages": [AIMessage("", tool_calls=calls)]}
    recorded, replayed = reversed_replay(
        lambda: [message.content for message in graph.invoke(state)["messages"]], BRANCHES
    )
    assert replayed == recorded
    assert len(set(recorded)) == 4


def test_branches_of_a_parallel_chain_get_their_own_answers(
    ask: Any, attached: Any, reversed_replay: Any
) -> None:
    """The branches of a RunnableParallel differ by their keys."""
    chain = attached(RunnableParallel({n: RunnableLambda(lambda _, n=n: ask(n)) for n in BRANCHES}))
    recorded, replayed = reversed_replay(lambda: chain.invoke("go"), BRANCHES)
    assert replayed == recorded
    assert len(set(recorded.values())) == 4


def test_two_concurrent_runs_of_a_graph_keep_their_answers(
    model: Any, attached: Any, server: ProviderServer, tape: Path
) -> None:
    """Each run has the lanes of its own task."""
    asked = model()

    async def node(_: State) -> dict[str, Any]:
        return {"answers": [("node", (await asked.ainvoke("the same question")).content)]}

    graph = attached(StateGraph(State).add_node("n", node).add_edge(START, "n").compile())

    async def both() -> list[Any]:
        return await asyncio.gather(*(graph.ainvoke({"answers": []}) for _ in range(2)))

    with tracefork.record(tape):
        recorded = asyncio.run(both())
    server.stop()
    with tracefork.replay(tape):
        assert asyncio.run(both()) == recorded


@pytest.mark.parametrize("how", ["ainvoke", "amessages"])
def test_an_async_fan_out_gets_its_own_answers(
    model: Any, attached: Any, twice: Any, how: str
) -> None:
    """On an event loop too, twenty sends with one prompt get their own answers."""
    asked = model()

    async def work(i: int) -> dict[str, Any]:
        return {"answers": [(str(i), (await asked.ainvoke("the same question")).content)]}

    builder = StateGraph(State).add_node("worker", work)
    builder.add_conditional_edges(START, lambda _: [Send("worker", i) for i in range(20)])
    graph = attached(builder.compile())

    async def run() -> Any:
        if how == "ainvoke":
            return (await graph.ainvoke({"answers": []}))["answers"]
        parts = graph.astream({"answers": []}, stream_mode="messages")
        return [str(message.content) async for message, _ in parts]

    recorded, replayed = twice(lambda: asyncio.run(run()))
    assert replayed == recorded
