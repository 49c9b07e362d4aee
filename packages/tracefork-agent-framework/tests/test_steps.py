"""Each exchange is in the step of its workflow, node, agent, model call or tool."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import agent_framework
import httpx
import pytest
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, WorkflowExecutor, handler
from agent_framework.orchestrations import (
    ConcurrentBuilder,
    GroupChatBuilder,
    HandoffBuilder,
    MagenticBuilder,
    SequentialBuilder,
)

import tracefork_core as tracefork
from tracefork_core.adapters import current_step
from tracefork_testkit import ModelRequest, ProviderServer, Reply

Call = Callable[..., Any]
MODEL = "model:gpt-5-mini"


def sequential(agent: Call) -> Any:
    participants = [agent("writer", "@say A."), agent("editor", "@say B.")]
    return SequentialBuilder(participants=participants).build()


def concurrent(agent: Call) -> Any:
    participants = [agent("slow", "@slow 0.1\n@say A."), agent("fast", "@say B.")]
    return ConcurrentBuilder(participants=participants).build()


def handoff(agent: Call) -> Any:
    kept = {"require_per_service_call_history_persistence": True}
    triage = agent("triage", "@call handoff_to_billing {}", **kept)
    billing = agent("billing", "@say Refunded.", **kept)
    desk = HandoffBuilder(name="desk", participants=[triage, billing])
    return desk.with_start_agent(triage).build()


def group_chat(agent: Call) -> Any:
    turns = iter(("ann", "bob", "ann"))
    return GroupChatBuilder(
        participants=[agent("ann", "@say A."), agent("bob", "@say B.")],
        selection_func=lambda _: next(turns),
        max_rounds=3,
    ).build()


FIRST = "main" if version("agent-framework-core") == "1.0.0" else "main.triage.1"
"""Where the first node of a workflow runs: later versions start a task for it."""

ORCHESTRATIONS: list[tuple[Any, list[str], list[str]]] = [
    (sequential, ["writer", "editor"], ["main.writer.1", "main.editor.1"]),
    (concurrent, ["slow", "fast"], ["main.slow.1", "main.fast.1"]),
    (handoff, ["triage", "billing"], [FIRST, "main.billing.3"]),
    (group_chat, ["ann", "bob", "ann"], ["main.ann.2", "main.bob.3", "main.ann.4"]),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("make", "agents", "lanes"), ORCHESTRATIONS)
def test_orchestrated_agents_have_steps_and_lanes(
    agent: Call,
    ask: Call,
    twice: Call,
    paths: Call,
    tape: Path,
    make: Any,
    agents: list[str],
    lanes: list[str],
    stream: bool,
) -> None:
    """The lane of an agent has its name, and the number of the message that it got."""

    def run() -> list[str]:
        events = ask(make(agent), stream=stream)
        return [_text(event.data) for event in events if event.type == "output"]

    recorded, again = twice(run)
    assert recorded == again
    assert recorded
    parts = [path.split(" ▸ ") for path in paths()]
    assert [part[1:] for part in parts] == [[f"agent:{name}", MODEL] for name in agents]
    assert len({part[0] for part in parts}) == 1
    assert parts[0][0].startswith("flow:")
    with tracefork.Tape.open(tape) as opened:
        assert [exchange.lane for exchange in opened.exchanges] == lanes
        assert [step.name for step in opened.steps if step.ended is None] == []


class Manager:
    """Answers the manager of Magentic, which asks for a ledger before each turn, and two agents."""

    def __init__(self) -> None:
        self.turns = iter(("ann", "ann", "bob"))

    def __call__(self, request: ModelRequest) -> Reply:
        """Answer."""
        if "is_request_satisfied" not in request.messages[-1].text:
            return Reply(f"Said {len(request.messages)}.")
        turn = next(self.turns, None)
        parts: dict[str, object] = {
            "is_request_satisfied": turn is None,
            "is_in_loop": False,
            "is_progress_being_made": True,
            "next_speaker": turn or "ann",
            "instruction_or_question": "Go on.",
        }
        return Reply(json.dumps({key: {"reason": "", "answer": it} for key, it in parts.items()}))


def test_the_manager_of_magentic_is_an_agent_too(
    agent_at: Call, ask: Call, tape: Path, paths: Call
) -> None:
    """It plans, and asks a model for the next agent, so blame may name it."""

    def run() -> list[str]:
        team = MagenticBuilder(
            participants=[agent("ann", description="A."), agent("bob", description="B.")],
            manager_agent=agent("manager"),
            max_round_count=4,
        ).build()
        return [_text(event.data) for event in ask(team) if event.type == "output"]

    with ProviderServer(Manager(), nondeterministic=True) as server, tracefork.record(tape):
        agent = agent_at(f"{server.url}/v1")
        recorded = run()
    with tracefork.replay(tape, strict=True) as replayed:
        assert run() == recorded
    assert replayed.digest == replayed.tape.digest
    agents = [path.split(" ▸ ")[-2].removeprefix("agent:") for path in paths()]
    assert [name for name in agents if name != "manager"] == ["ann", "ann", "bob"]
    assert agents[0] == agents[-1] == "manager"


def _text(data: Any) -> str:
    if isinstance(data, list):
        return "".join(map(_text, data))
    return str(getattr(data, "text", data))


def test_a_tool_and_an_agent_as_a_tool_have_steps(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """The inner agent is in the step of the tool, and equal calls have lanes of their own."""

    def find(order: int) -> str:
        return f"order {order}"

    helper = agent("helper", description="Helps.").as_tool()
    words = '@call helper {"task": "Hm."}\n@call helper {"task": "Hm."}\n'
    words += '@call find {"order": 7}\n@then\n@say Done.'
    twice(lambda: ask(agent("root", words, tools=[helper, find])).text)
    inner = f"agent:root ▸ tool:helper ▸ agent:helper ▸ {MODEL}"
    assert sorted(paths()) == [
        *[f"agent:root ▸ {MODEL}"] * 2,
        "agent:root ▸ tool:find",
        *[inner] * 2,
    ]
    with tracefork.Tape.open(tape) as opened:
        lanes = {exchange.lane for exchange in opened.exchanges}
    assert lanes == {"main", "main.find.1", "main.helper.1", "main.helper.2"}


class Fetch(Executor):
    """A node that asks over HTTP."""

    def __init__(self, name: str, url: str) -> None:
        super().__init__(id=name)
        self._url = url

    @handler
    async def fetch(self, question: str, ctx: WorkflowContext[str]) -> None:
        """Send on what the server says."""
        async with httpx.AsyncClient() as client:
            answer = await client.get(f"{self._url}/echo/{self.id}")
        await ctx.send_message(answer.reason_phrase)


class Spread(Executor):
    """A node that sends on what it gets."""

    @handler
    async def spread(self, question: str, ctx: WorkflowContext[str]) -> None:
        """Send it to all."""
        await ctx.send_message(question)


class Join(Executor):
    """A node that waits for others."""

    @handler
    async def join(self, answers: list[str], ctx: WorkflowContext[str, str]) -> None:
        """Give the sum of the answers."""
        await ctx.yield_output(" ".join(answers))


def news(url: str) -> Any:
    """Return a workflow of nodes that ask at once, and a join."""
    nodes = [Fetch(name, url.removesuffix("/v1")) for name in ("oslo", "rome", "lima")]
    start, join = Spread(id="start"), Join(id="join")
    builder = WorkflowBuilder(start_executor=start)
    builder.add_fan_out_edges(start, nodes).add_fan_in_edges(nodes, join)
    return builder.build()


def test_nodes_of_a_workflow_have_steps(
    ask: Call, twice: Call, paths: Call, tape: Path, url: str
) -> None:
    """Those that ask over HTTP have their own, and a join names the nodes before it."""
    recorded, again = twice(lambda: ask(news(url)).get_outputs())
    assert recorded == again
    assert sorted(paths()) == [f"flow:workflow ▸ node:{it}" for it in ("lima", "oslo", "rome")]
    with tracefork.Tape.open(tape) as opened:
        names = {step.id: step.name for step in opened.steps}
        after = {step.name: step.detail.get("after") for step in opened.steps}
        lanes = sorted(exchange.lane for exchange in opened.exchanges)
    joined: Any = after.pop("join")
    assert [names[one] for one in joined] == ["oslo", "rome", "lima"]
    assert set(after.values()) == {None}
    assert lanes == ["main.lima.1", "main.oslo.1", "main.rome.1"]


def test_workflows_in_workflows_and_agents_have_steps(
    ask: Call, twice: Call, paths: Call, agent: Call, url: str
) -> None:
    """A sub-workflow is in its node, and a workflow that is an agent is in that agent."""

    def run() -> list[str]:
        ask(WorkflowBuilder(start_executor=WorkflowExecutor(news(url), id="inner")).build())
        pair = SequentialBuilder(participants=[agent(None, "@say A.")]).build().as_agent("pair")
        return [message.text for message in ask(pair).messages]

    recorded, again = twice(run)
    assert recorded == again
    found = paths()
    inner = "flow:workflow ▸ node:inner ▸ flow:workflow ▸ node:"
    assert sorted(found[:3]) == [f"{inner}{it}" for it in ("lima", "oslo", "rome")]
    assert found[3].startswith("agent:pair ▸ flow:")
    assert found[3].endswith(f" ▸ agent:agent ▸ {MODEL}")


def test_workflows_that_are_functions_have_steps(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Path, url: str
) -> None:
    """Functions marked with `@step` are nodes, and two at once have lanes of their names."""
    if not hasattr(agent_framework, "workflow"):
        pytest.skip("Agent Framework 1.0 has no such workflows")

    @agent_framework.step(replay_key=lambda name: name)
    async def fetch(name: str) -> str:
        async with httpx.AsyncClient() as client:
            answer = await client.get(f"{url.removesuffix('/v1')}/echo/{name}")
        return answer.reason_phrase

    @agent_framework.workflow
    async def report(question: str) -> str:
        found = await asyncio.gather(fetch("oslo"), fetch("rome"))
        return str(found) + str((await agent("writer", "@say Hi.").run(question)).text)

    recorded, again = twice(lambda: ask(report.build(), stream=True).get_outputs())
    assert recorded == again
    assert paths() == [
        *["flow:report ▸ node:fetch"] * 2,
        f"flow:report ▸ agent:writer ▸ {MODEL}",
    ]
    with tracefork.Tape.open(tape) as opened:
        lanes = [exchange.lane for exchange in opened.exchanges]
    assert lanes == ["main.fetch.1", "main.fetch.2", "main.writer.1"]


def test_the_reader_of_a_stream_never_sees_its_step(agent: Call, tape: Path) -> None:
    """The stream works in the context of its reader, who may stop at any item."""
    seen: list[object] = []

    async def read(most: int) -> None:
        stream = agent("writer", "@say Hi.").run("Go on.", stream=True)
        async for _ in stream:
            seen.append(current_step.get())
            if len(seen) == most:
                break
        seen.append(current_step.get())
        if hasattr(stream, "close"):
            await stream.close()

    with tracefork.record(tape):
        asyncio.run(read(1))
        asyncio.run(read(100))
    assert set(seen) == {None}
    with tracefork.Tape.open(tape) as opened:
        assert [step.ended is not None for step in opened.steps][-2:] == [True, True]
