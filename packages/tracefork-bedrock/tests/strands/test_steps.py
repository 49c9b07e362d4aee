"""Each exchange is in the step of its run, node, agent, turn, model call or tool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from strands import tool
from strands.multiagent import GraphBuilder, Swarm
from strands.multiagent.graph import Graph

import tracefork_core as tracefork
from tracefork_bedrock.strands import leave_live
from tracefork_core import Tape
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]


@tool
def refund(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}"


def diamond(agent: Call) -> Graph:
    """Two nodes work at once, and a third gets the results of both."""
    builder = GraphBuilder()
    builder.set_graph_id("desk").set_max_node_executions(10)
    words = '@call refund {"order": 7}\n@then\n@say Done.'
    builder.add_node(agent(None, "@say Start."), "start")
    builder.add_node(agent("Payer", words, tools=[refund]), "pay")
    builder.add_node(agent(None, "@say Yes."), "check")
    builder.add_node(agent(None, "@say All."), "end")
    for pair in (("start", "pay"), ("start", "check"), ("pay", "end"), ("check", "end")):
        builder.add_edge(*pair)
    return builder.build()


DIAMOND = [
    "run:desk ▸ node:start ▸ agent:start ▸ turn:turn 1 ▸ model:claude",
    "run:desk ▸ node:pay ▸ agent:Payer ▸ turn:turn 1 ▸ model:claude",
    "run:desk ▸ node:pay ▸ agent:Payer ▸ turn:turn 1 ▸ tool:refund",
    "run:desk ▸ node:pay ▸ agent:Payer ▸ turn:turn 2 ▸ model:claude",
    "run:desk ▸ node:check ▸ agent:check ▸ turn:turn 1 ▸ model:claude",
    "run:desk ▸ node:end ▸ agent:end ▸ turn:turn 1 ▸ model:claude",
]


def test_nodes_of_a_graph_are_steps_after_those_they_wait_for(
    agent: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """A join has several steps before it, and each parallel node has a lane of its own."""
    recorded, again = twice(lambda: str(diamond(agent)("Refund order 7.").results["end"].result))
    assert again == recorded
    assert sorted(paths()) == sorted(DIAMOND)
    with Tape.open(tape) as opened:
        nodes = {step.id: step.name for step in opened.steps if step.kind == "node"}
        before: Any = {
            step.name: step.detail.get("after", []) for step in opened.steps if step.kind == "node"
        }
        lanes = [one.lane for one in opened.exchanges]
    assert {name: [nodes[it] for it in ids] for name, ids in before.items()} == {
        "start": [],
        "pay": ["start"],
        "check": ["start"],
        "end": ["pay", "check"],
    }
    for name in nodes.values():
        assert any(lane.split("/")[-1].endswith(f".{name}.1") for lane in lanes)


@pytest.mark.parametrize("place", ["node:check", "agent:Payer", "tool:refund", "agent:end"])
def test_a_node_an_agent_and_a_tool_are_fork_points(
    agent: Call, server: ProviderServer, tape: Path, place: str
) -> None:
    """What lies before is answered from the tape, and nodes beside it that were done stay done."""
    with tracefork.record(tape):
        diamond(agent)("Refund order 7.")
    asked = len(server.requests)
    with tracefork.fork(tape, place, writes="allow") as forked:
        diamond(agent)("Refund order 7.")
    assert forked.live >= 1
    assert forked.replayed + forked.live == len(DIAMOND)
    assert len(server.requests) - asked < asked


def loop(agent: Call) -> Graph:
    """A node is visited twice."""
    builder = GraphBuilder()
    builder.set_graph_id("loop").set_max_node_executions(4).reset_on_revisit()
    builder.add_node(agent(None, "@say Draft."), "write")
    builder.add_node(agent(None, "@say Again."), "review")
    builder.add_edge("write", "review")
    builder.set_entry_point("write")
    builder.add_edge("review", "write", condition=lambda state: len(state.execution_order) < 3)
    return builder.build()


def test_a_node_that_runs_again_has_a_second_step(agent: Call, twice: Call, paths: Call) -> None:
    """Its exchanges are told apart by their steps and lanes."""
    recorded, again = twice(lambda: len(loop(agent)("Write.").execution_order))
    assert recorded == again == 4
    assert [path.split(" ▸ ")[1] for path in paths()] == ["node:write", "node:review"] * 2


def test_a_swarm_hands_off_in_steps(agent: Call, twice: Call, paths: Call, tape: Path) -> None:
    """The hand-off is a step and no exchange; it runs in a replay, for it moves the swarm on."""

    def run() -> Any:
        triage = agent(
            "triage",
            '@call handoff_to_agent {"agent_name": "billing", "message": "Refund it."}\n'
            "@then\n@say Handed over.",
        )
        billing = agent("billing", '@call refund {"order": 7}\n@then\n@say Done.', tools=[refund])
        result = Swarm([triage, billing], id="desk")("Refund order 7.")
        return [node.node_id for node in result.node_history], str(result.results["billing"].result)

    recorded, again = twice(run)
    assert again == recorded
    assert recorded[0] == ["triage", "billing"]
    assert [path.split(" ▸ ")[1] for path in paths()] == ["node:triage"] * 2 + ["node:billing"] * 3
    with Tape.open(tape) as opened:
        nodes = {step.name: step for step in opened.steps if step.kind == "node"}
        handoffs = [step.name for step in opened.steps if step.kind == "handoff"]
    assert nodes["billing"].detail["after"] == [nodes["triage"].id]
    assert handoffs == ["billing"]


def test_a_graph_in_a_graph_has_its_steps_inside(agent: Call, twice: Call, paths: Call) -> None:
    """A node may be a swarm or a graph itself."""

    def run() -> Any:
        builder = GraphBuilder()
        builder.set_graph_id("outer").set_max_node_executions(10)
        builder.add_node(diamond(agent), "inner")
        builder.add_node(agent(None, "@say After."), "after")
        builder.add_edge("inner", "after")
        return str(builder.build()("Refund order 7.").results["after"].result)

    recorded, again = twice(run)
    assert again == recorded
    inner = [f"run:outer ▸ node:inner ▸ {path}" for path in DIAMOND]
    after = "run:outer ▸ node:after ▸ agent:after ▸ turn:turn 1 ▸ model:claude"
    assert sorted(paths()) == sorted([*inner, after])


def test_an_agent_as_a_tool_has_its_steps_inside(agent: Call, twice: Call, paths: Call) -> None:
    """Its own requests are exchanges; the call is not another one."""

    def run() -> Any:
        expert = agent("expert", "@say Yes.").as_tool()
        helper = agent(
            "Helper", '@call expert {"input": "May I?"}\n@then\n@say So.', tools=[expert]
        )
        return str(helper("Go on."))

    recorded, again = twice(run)
    assert again == recorded
    first = "agent:Helper ▸ turn:turn 1"
    assert paths() == [
        f"{first} ▸ model:claude",
        f"{first} ▸ delegation:expert ▸ agent:expert ▸ turn:turn 1 ▸ model:claude",
        "agent:Helper ▸ turn:turn 2 ▸ model:claude",
    ]


@pytest.mark.parametrize("is_left_live", [True, False])
def test_an_agent_inside_a_tool_is_seen_if_the_tool_is_left_live(
    agent: Call, twice: Call, paths: Call, is_left_live: bool
) -> None:
    """If not, the recording says how to see it."""

    def run() -> Any:
        @tool
        def ask_expert(question: str) -> str:
            """Ask the expert."""
            return str(agent("expert", "@say Yes.")(question))

        used = leave_live(ask_expert) if is_left_live else ask_expert
        words = '@call ask_expert {"question": "May I?"}\n@then\n@say So.'
        return str(agent("Helper", words, tools=[used])("Go on."))

    if is_left_live:
        recorded, again = twice(run)
    else:
        with pytest.warns(UserWarning, match=r"ask_expert runs the agent expert.*leave_live"):
            recorded, again = twice(run)
    assert again == recorded
    inside = "agent:Helper ▸ turn:turn 1 ▸ tool:ask_expert"
    seen = f"{inside} ▸ agent:expert ▸ turn:turn 1 ▸ model:claude"
    assert paths()[1] == (seen if is_left_live else inside)


def test_structured_output_is_taken_in_a_replay(agent: Call, twice: Call, paths: Call) -> None:
    """The tool that takes it belongs to Strands, so it runs again and is no exchange."""

    class Answer(BaseModel):
        """An answer."""

        text: str

    def run() -> Any:
        helper = agent("Helper", '@call Answer {"text": "Yes."}')
        return helper("Go on.", structured_output_model=Answer).structured_output

    assert twice(run) == (Answer(text="Yes."), Answer(text="Yes."))
    assert paths() == ["agent:Helper ▸ turn:turn 1 ▸ model:claude"]


def test_a_reader_of_events_is_not_inside_the_agent(agent: Call, twice: Call, paths: Call) -> None:
    """What it asks between two events, and after it has left the stream, is its own."""

    async def read() -> Any:
        async for event in agent("First", "@say One two three.").stream_async("Go on."):
            if "data" in event:
                answer = await agent("Beside", "@say Beside.").invoke_async("And you?")
                break
        return str(answer), str(await agent("After", "@say After.").invoke_async("And you?"))

    recorded, again = twice(lambda: asyncio.run(read()))
    assert again == recorded
    assert [path.split(" ▸ ")[0] for path in paths()] == [
        "agent:First",
        "agent:Beside",
        "agent:After",
    ]


def test_another_hash_seed_starts_and_joins_nodes_alike(agent: Call, tape: Path) -> None:
    """Strands keeps nodes and edges in sets: their order would differ in another process."""
    with tracefork.record(tape):
        diamond(agent)("Refund order 7.")
    for is_reversed in (False, True):
        graph = diamond(agent)
        edges: Any = sorted(graph.edges, key=lambda it: it.from_node.node_id, reverse=is_reversed)
        graph.edges = edges
        with tracefork.replay(tape, strict=True):
            graph("Refund order 7.")
