"""In graphs: as a drop-in, with what LangGraph does besides stepping."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import tracefork_core as tracefork
from tracefork_langgraph import TapeSaver

try:
    from langgraph.channels.delta import DeltaChannel
except ImportError:  # Before LangGraph 1.2.
    DeltaChannel = None

with_deltas = pytest.mark.skipif(
    version("langgraph").startswith(("1.0.", "1.1.")),
    reason="LangGraph has no DeltaChannel before 1.2: there is nothing to save",
)

Make = Callable[..., Any]


def said(state: Any) -> list[str]:
    return [message.content for message in state["messages"]]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_thread_goes_on_in_another_saver(
    path: Path, chain: Make, on: Make, durability: str
) -> None:
    """However a run was saved, its state is there for the next one."""
    chain(TapeSaver(path)).invoke({"messages": [("user", "hi")]}, on(), durability=durability)
    state = chain(TapeSaver(path)).invoke({"messages": [("user", "more")]}, on())
    assert said(state) == ["hi", "a 0", "b 1", "c 2", "more", "a 3", "b 4", "c 5"]
    assert state["seen"] == list("abcabc")


async def test_async_runs_are_as_sync_ones(path: Path, chain: Make, on: Make) -> None:
    """What was saved by one is read by the other, with the same history."""
    graph = chain(TapeSaver(path))
    threads = [on(f"t{i}") for i in range(4)]
    await asyncio.gather(*(graph.ainvoke({"messages": []}, config) for config in threads))
    for config in threads:
        history = [one.config async for one in graph.aget_state_history(config)]
        assert history == [one.config for one in graph.get_state_history(config)]
        assert (await graph.aget_state(config)).values["seen"] == list("abc")


def test_a_fork_leaves_the_line_it_left(saver: TapeSaver, chain: Make, on: Make) -> None:
    """Running on from the past makes a branch; what was there reads as before."""
    graph = chain(saver)
    graph.invoke({"messages": []}, on())
    before = [(one.config, one.values) for one in graph.get_state_history(on())]
    past = before[2][0]
    changed = graph.update_state(past, {"seen": ["!"]}, as_node="a")
    assert graph.invoke(None, changed)["seen"] == ["a", "!", "b", "c"]
    assert [(one.config, one.values) for one in graph.get_state_history(on())][-4:] == before[-4:]
    assert [graph.get_state(config).values for config, _ in before] == [v for _, v in before]


def test_an_interrupt_waits_in_the_file(path: Path, on: Make) -> None:
    """A run that waits for an answer gets it in another process, as far as the file can tell."""

    class Asked(TypedDict, total=False):
        answer: str

    def ask(state: Asked) -> Asked:
        return {"answer": interrupt("sure?")}

    builder = StateGraph(Asked).add_node("ask", ask).add_edge(START, "ask")
    waiting = builder.compile(checkpointer=TapeSaver(path))
    assert waiting.invoke({}, on())["__interrupt__"][0].value == "sure?"
    resumed = builder.compile(checkpointer=TapeSaver(path))
    assert resumed.get_state(on()).tasks[0].interrupts[0].value == "sure?"
    assert resumed.invoke(Command(resume="yes"), on()) == {"answer": "yes"}


def test_a_subgraph_has_its_own_line(saver: TapeSaver, chain: Make, on: Make) -> None:
    """The states of a graph inside a node are in a ns of their own, and are found there."""
    inner = chain(None, "xy", interrupt_before=["y"])
    builder = StateGraph(inner.builder.state_schema).add_node("sub", inner).add_edge(START, "sub")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"messages": []}, on())
    (task,) = graph.get_state(on(), subgraphs=True).tasks
    assert task.state.values["seen"] == ["x"]
    assert task.state.config["configurable"]["checkpoint_ns"].startswith("sub:")
    assert graph.invoke(None, on())["seen"] == ["x", "y"]


def test_an_agent_remembers(path: Path, model: Make, on: Make) -> None:
    """LangChain's prebuilt agent keeps its thread over a restart."""
    for turn in (1, 2):
        agent = create_agent(model(), [], checkpointer=TapeSaver(path))
        state = agent.invoke({"messages": [("user", "hello")]}, on())
        assert len(state["messages"]) == 2 * turn


def counted(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(one for write in writes for one in write)]


def delta_graph(checkpointer: object) -> Any:
    """A graph whose channel is stored as what is written to it, but for each third state."""

    class Deltas(TypedDict, total=False):
        log: Annotated[list[str], DeltaChannel(counted, snapshot_frequency=3)]
        n: Annotated[int, operator.add]

    builder = StateGraph(Deltas)
    for name in "abcde":
        builder.add_node(name, lambda state, name=name: {"log": [f"{name}{state['n']}"], "n": 1})
    builder.add_edge(START, "a")
    for first, second in ("ab", "ac", "bd", "cd", "de"):
        builder.add_edge(first, second)
    return builder.compile(checkpointer=checkpointer)


@with_deltas
@pytest.mark.parametrize("runs", [1, 2, 3])
def test_the_state_of_a_delta_channel_outlives_copies_and_pruning(
    saver: TapeSaver, on: Make, runs: int
) -> None:
    """It is what it was in memory: in the copy, and where only the latest states were kept."""
    graph, live = delta_graph(saver), delta_graph(InMemorySaver())
    for n in range(runs):
        for one in (graph, live):
            one.invoke({"n": n, "log": [f"in{n}"]}, on())
    expected = live.get_state(on()).values
    history = [one.values for one in graph.get_state_history(on())]
    assert history == [one.values for one in live.get_state_history(on())]
    saver.copy_thread("t", "copy")
    saver.prune(["t"])
    assert graph.get_state(on()).values == expected
    assert graph.get_state(on("copy")).values == expected
    assert len(list(saver.list(on()))) < len(history)
    assert [one.values for one in graph.get_state_history(on("copy"))] == history
    for one, config in ((graph, on()), (live, on())):
        one.update_state(config, {"log": ["late"]})
    saver.prune(["t"])
    assert graph.get_state(on()).values == live.get_state(on()).values


@with_deltas
def test_the_history_of_a_channel_is_what_the_framework_would_find(
    saver: TapeSaver, on: Make
) -> None:
    """The short way through the rows returns what the long way through all states does."""
    graph = delta_graph(saver)
    graph.invoke({"n": 1, "log": ["in"]}, on())
    for state in graph.get_state_history(on()):
        asked = {"config": state.config, "channels": ["log", "n", "nothing"]}
        slow = super(TapeSaver, saver).get_delta_channel_history(**asked)
        assert saver.get_delta_channel_history(**asked) == slow


def test_a_recording_is_read_and_not_written(path: Path, chain: Make, on: Make) -> None:
    """What a session put on its tape is there for a saver of it; a run is told to go elsewhere."""
    with tracefork.record(path):
        recorded = chain(TapeSaver(path)).invoke({"messages": [("user", "hi")]}, on())
    graph = chain(TapeSaver(path))
    assert graph.get_state(on()).values == recorded
    history = [one.values.get("seen") for one in graph.get_state_history(on())]
    assert history == [list("abc"), list("ab"), ["a"], [], []]
    with pytest.raises(tracefork.UsageError, match="finished recording"):
        graph.invoke({"messages": []}, on())
    with pytest.raises(tracefork.UsageError, match="finished recording"):
        TapeSaver(path).delete_thread("t")
