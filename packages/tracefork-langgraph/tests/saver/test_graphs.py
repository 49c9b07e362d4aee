"""TapeSaver in graphs: a drop-in checkpointer for all that LangGraph does with one."""

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
def test_thread_continues_in_another_saver(
    path: Path, chain: Make, on: Make, durability: str
) -> None:
    """With every durability, the saved state is there for the next saver."""
    chain(TapeSaver(path)).invoke({"messages": [("user", "hi")]}, on(), durability=durability)
    state = chain(TapeSaver(path)).invoke({"messages": [("user", "more")]}, on())
    assert said(state) == ["hi", "a 0", "b 1", "c 2", "more", "a 3", "b 4", "c 5"]
    assert state["seen"] == list("abcabc")


async def test_async_and_sync_runs_read_the_same_history(path: Path, chain: Make, on: Make) -> None:
    """Four async runs in parallel are read back in sync code."""
    graph = chain(TapeSaver(path))
    threads = [on(f"t{i}") for i in range(4)]
    await asyncio.gather(*(graph.ainvoke({"messages": []}, config) for config in threads))
    for config in threads:
        history = [one.config async for one in graph.aget_state_history(config)]
        assert history == [one.config for one in graph.get_state_history(config)]
        assert (await graph.aget_state(config)).values["seen"] == list("abc")


def test_branch_leaves_the_old_checkpoints_unchanged(
    saver: TapeSaver, chain: Make, on: Make
) -> None:
    """Running on from the past creates a branch; the old states read as before."""
    graph = chain(saver)
    graph.invoke({"messages": []}, on())
    before = [(one.config, one.values) for one in graph.get_state_history(on())]
    past = before[2][0]
    changed = graph.update_state(past, {"seen": ["!"]}, as_node="a")
    assert graph.invoke(None, changed)["seen"] == ["a", "!", "b", "c"]
    assert [(one.config, one.values) for one in graph.get_state_history(on())][-4:] == before[-4:]
    assert [graph.get_state(config).values for config, _ in before] == [v for _, v in before]


def test_interrupt_is_stored_and_resumed_by_another_saver(path: Path, on: Make) -> None:
    """Another process would see the same file."""

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


def test_states_of_a_subgraph_are_found_in_their_own_namespace(
    saver: TapeSaver, chain: Make, on: Make
) -> None:
    """They are found while the subgraph is halted, and it then continues."""
    inner = chain(None, "xy", interrupt_before=["y"])
    builder = StateGraph(inner.builder.state_schema).add_node("sub", inner).add_edge(START, "sub")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"messages": []}, on())
    (task,) = graph.get_state(on(), subgraphs=True).tasks
    assert task.state.values["seen"] == ["x"]
    assert task.state.config["configurable"]["checkpoint_ns"].startswith("sub:")
    assert graph.invoke(None, on())["seen"] == ["x", "y"]


def test_agent_keeps_its_thread_over_a_restart(path: Path, model: Make, on: Make) -> None:
    """The agent is LangChain's prebuilt one."""
    for turn in (1, 2):
        agent = create_agent(model(), [], checkpointer=TapeSaver(path))
        state = agent.invoke({"messages": [("user", "hello")]}, on())
        assert len(state["messages"]) == 2 * turn


def counted(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(one for write in writes for one in write)]


def delta_graph(checkpointer: object) -> Any:
    """A graph with a channel that stores writes, and a snapshot at every third state."""

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
def test_delta_channel_survives_copies_and_pruning(saver: TapeSaver, on: Make, runs: int) -> None:
    """The copy, and a thread pruned to its latest states, equal the state in memory."""
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
def test_channel_history_equals_that_of_the_framework(saver: TapeSaver, on: Make) -> None:
    """The short way through the rows finds the same as the long way through all states."""
    graph = delta_graph(saver)
    graph.invoke({"n": 1, "log": ["in"]}, on())
    for state in graph.get_state_history(on()):
        asked = {"config": state.config, "channels": ["log", "n", "nothing"]}
        slow = super(TapeSaver, saver).get_delta_channel_history(**asked)
        assert saver.get_delta_channel_history(**asked) == slow


def test_recording_can_be_read_but_not_written(path: Path, chain: Make, on: Make) -> None:
    """A saver reads the checkpoints of a session from its tape; a run there is refused."""
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
