"""Each exchange is in the step of its run, agent, node, model call or tool."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import START, JoinNode, Workflow, node

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # They are deprecated in favour of workflows.
    from google.adk.agents.loop_agent import LoopAgent
    from google.adk.agents.parallel_agent import ParallelAgent
    from google.adk.agents.sequential_agent import SequentialAgent

import tracefork_core as tracefork
from tracefork_core.adapters import current_step

Call = Callable[..., Any]
MODEL = "model:gemini-2.5-flash"


def test_a_transfer_and_a_tool_have_steps(agent: Call, ask: Call, twice: Call, paths: Call) -> None:
    """The next agent is in the run, not in the agent before it: so blame compares the two."""

    def find_payments(order: int) -> str:
        return f"one payment of order {order}"

    words = '@call find_payments {"order": 7}\n@then\n@say Refunded.'
    billing = agent("billing", words, tools=[find_payments], description="Pays back.")
    words = '@call transfer_to_agent {"agent_name": "billing"}'
    triage = agent("triage", words, sub_agents=[billing])
    twice(lambda: ask(triage))
    assert paths() == [
        f"run:desk ▸ agent:triage ▸ {MODEL}",
        "run:desk ▸ agent:triage ▸ handoff:billing",
        f"run:desk ▸ agent:billing ▸ {MODEL}",
        "run:desk ▸ agent:billing ▸ tool:find_payments",
        f"run:desk ▸ agent:billing ▸ {MODEL}",
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_agents_of_agents_have_steps(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """Parallel agents have lanes of their names, and a loop repeats its agent's step."""
    writer = agent("writer", "@say C.")
    sub_agents = [agent("slow", "@slow 0.1\n@say A."), agent("fast", "@say B.")]
    both = ParallelAgent(name="both", sub_agents=sub_agents)
    loop = LoopAgent(name="loop", max_iterations=2, sub_agents=[writer])
    root = SequentialAgent(name="all", sub_agents=[both, loop])
    twice(lambda: ask(root))
    assert sorted(paths()) == [
        f"run:desk ▸ agent:all ▸ agent:both ▸ agent:fast ▸ {MODEL}",
        f"run:desk ▸ agent:all ▸ agent:both ▸ agent:slow ▸ {MODEL}",
        *[f"run:desk ▸ agent:all ▸ agent:loop ▸ agent:writer ▸ {MODEL}"] * 2,
    ]
    with tracefork.Tape.open(tape) as opened:
        lanes = [exchange.lane for exchange in opened.exchanges]
    assert sorted(lanes) == ["main", "main", "main.fast.1", "main.slow.1"]


def test_the_run_of_an_agent_as_a_tool_is_in_the_step_of_the_tool(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """Two equal calls at once have lanes of their own."""
    helper = AgentTool(agent("helper", description="Helps."))
    words = '@call helper {"request": "Hm."}\n@call helper {"request": "Hm."}\n@then\n@say Done.'
    twice(lambda: ask(agent("root", words, tools=[helper])))
    inner = f"run:desk ▸ agent:root ▸ tool:helper ▸ run:desk ▸ agent:helper ▸ {MODEL}"
    outer = f"run:desk ▸ agent:root ▸ {MODEL}"
    assert paths() == [outer, inner, inner, outer]
    with tracefork.Tape.open(tape) as opened:
        lanes = {exchange.lane for exchange in opened.exchanges}
    lane = "main.root.1.helper.{}.helper.1"
    assert lanes == {"main.root.1", lane.format(1), lane.format(2)}


NAMES = [f"fetch_{name}" for name in ("oslo", "rome", "cairo", "lima", "paris", "tokyo", "delhi")]


def test_nodes_of_a_workflow_have_steps(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Path, url: str
) -> None:
    """Functions that ask over HTTP have their own, and a join names the nodes before it.

    It gets their outputs in the order of the graph, whatever the hashes of their names are.
    """

    def fetching(name: str) -> Any:
        async def fetch(node_input: Any) -> str:
            async with httpx.AsyncClient() as client:
                return (await client.get(f"{url}/echo/{name}")).reason_phrase

        return node(fetch, name=name)

    @node
    def collect(node_input: Any) -> str:
        order.append(list(node_input))
        return str(node_input)

    order: list[list[str]] = []
    before = (agent("writer", "@slow 0.1\n@say A."), *map(fetching, NAMES))
    edges: Any = [(START, before, JoinNode(name="join"), collect, agent("editor", "@say B."))]
    flow = Workflow(name="news", edges=edges)
    twice(lambda: ask(flow))
    assert order == [["writer", *NAMES]] * 2
    assert sorted(paths()) == [
        f"run:desk ▸ flow:news ▸ agent:editor ▸ {MODEL}",
        f"run:desk ▸ flow:news ▸ agent:writer ▸ {MODEL}",
        *sorted(f"run:desk ▸ flow:news ▸ node:{name}" for name in NAMES),
    ]
    with tracefork.Tape.open(tape) as opened:
        names = {step.id: step.name for step in opened.steps}
        after = {step.name: step.detail.get("after") for step in opened.steps}
    joined: Any = after.pop("join")
    assert [names[one] for one in joined] == ["writer", *NAMES]
    assert set(after.values()) == {None}


def test_workers_of_one_node_get_their_own_answers(agent: Call, ask: Call, twice: Call) -> None:
    """They ask the same at once, of one agent."""

    @node
    def items(node_input: Any) -> list[str]:
        return ["Hm."] * 3

    outputs: list[Any] = []

    @node
    def collect(node_input: Any) -> None:
        outputs.append(node_input)

    writer = node(agent("writer"), parallel_worker=True)
    edges: Any = [(START, items, writer, collect)]
    twice(lambda: ask(Workflow(name="news", edges=edges)))
    recorded, again = outputs
    assert recorded == again
    assert len(set(map(str, recorded))) == 3


def test_the_caller_never_sees_the_step_of_a_run(agent: Call, tape: Path, run_events: Call) -> None:
    """ADK's generators share the context of their caller, who may stop reading at any event."""
    seen: list[object] = []

    async def read(most: int) -> None:
        async with run_events(agent("writer", "@say Hi.")) as events:
            async for _ in events:
                seen.append(current_step.get())
                if len(seen) == most:
                    break
        seen.append(current_step.get())

    with tracefork.record(tape):
        asyncio.run(read(1))
    assert seen == [None, None]
    with tracefork.Tape.open(tape) as opened:
        assert [step.ended is not None for step in opened.steps] == [True] * 3
        assert [step.error for step in opened.steps] == [None] * 3
