"""Each exchange is in the step of its team, agent and model call, on the lane of its agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import SocietyOfMindAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import (
    MagenticOneGroupChat,
    RoundRobinGroupChat,
    SelectorGroupChat,
    Swarm,
)
from autogen_agentchat.tools import AgentTool, TeamTool
from autogen_core import SingleThreadedAgentRuntime

import tracefork_core as tracefork
from tracefork_core.adapters import current_step
from tracefork_testkit import ModelRequest, ProviderServer, Reply

Call = Callable[..., Any]
MODEL = "model:gpt-4o"


def test_each_turn_of_an_agent_has_a_step(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Path, causes: Call
) -> None:
    """It comes after the agent whose message it answers, and has a lane of its own."""

    def run() -> Any:
        team = RoundRobinGroupChat(
            [agent("writer", "@say A."), agent("critic", "@say B.")],
            name="desk",
            termination_condition=MaxMessageTermination(4),
        )
        return ask(team)

    recorded, again = twice(run)
    assert recorded == again
    names = ["writer", "critic", "writer"]
    assert paths() == [f"team:desk ▸ agent:{name} ▸ {MODEL}" for name in names]
    assert causes() == [("critic", ["writer"]), ("writer", ["critic"])]
    with tracefork.Tape.open(tape) as opened:
        lanes = [exchange.lane.partition("/")[0] for exchange in opened.exchanges]
    assert lanes == ["main.writer.1", "main.critic.1", "main.writer.2"]


def test_streamed_answers_are_in_the_same_steps(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """Each piece of a streamed answer arrives in a task of its own."""

    def run() -> Any:
        agents = [agent(name, "@say A.", model_client_stream=True) for name in ("one", "two")]
        return ask(RoundRobinGroupChat(agents, max_turns=2, name="desk"))

    recorded, again = twice(run)
    assert recorded == again
    assert paths() == [f"team:desk ▸ agent:{name} ▸ {MODEL}" for name in ("one", "two")]


def test_the_manager_of_a_selector_is_an_agent(
    agent: Call, ask: Call, client: Call, twice: Call, paths: Call, causes: Call
) -> None:
    """It asks a model who is next, so it may be the one that is wrong."""

    def run() -> Any:
        agents = [agent("writer", "@say A."), agent("critic", "@say B.")]
        options = {"selector_prompt": "@say critic\n{participants}", "name": "desk"}
        return ask(SelectorGroupChat(agents, client(), max_turns=2, **options))

    recorded, again = twice(run)
    assert recorded == again
    manager = "SelectorGroupChatManager"
    assert list(dict.fromkeys(paths())) == [
        f"team:desk ▸ agent:{name} ▸ {MODEL}" for name in (manager, "critic", "writer")
    ]
    assert causes()[:3] == [
        ("critic", [manager]),
        (manager, ["critic"]),
        ("writer", [manager]),
    ]


def test_a_swarm_hands_over_from_agent_to_agent(
    agent: Call, ask: Call, twice: Call, paths: Call, causes: Call
) -> None:
    """The next agent is beside the one before it, and after it."""

    def run() -> Any:
        triage = agent("triage", "@call transfer_to_billing {}", handoffs=["billing"])
        billing = agent("billing", "@say Refunded.")
        return ask(Swarm([triage, billing], max_turns=2, name="desk"))

    recorded, again = twice(run)
    assert recorded == again
    asked = [path for path in paths() if path.endswith(MODEL)]
    assert asked == [f"team:desk ▸ agent:{name} ▸ {MODEL}" for name in ("triage", "billing")]
    assert causes() == [("billing", ["triage"])]


def test_the_orchestrator_of_magentic_one_is_an_agent(
    agent_at: Call, client_at: Call, ask: Call, tape: Path, paths: Call
) -> None:
    """It asks for facts, a plan and the next speaker."""

    def answer(request: ModelRequest) -> Reply:
        asked = request.last_user_text
        if "is_request_satisfied" not in asked:
            return Reply("Hm.")
        done = "Found it" in str(request.messages)
        names = ("is_request_satisfied", "is_in_loop", "is_progress_being_made")
        values = dict(zip(names, (done, False, True), strict=True))
        ledger: dict[str, Any] = {key: {"reason": "", "answer": values[key]} for key in names}
        ledger["next_speaker"] = {"reason": "", "answer": "finder"}
        ledger["instruction_or_question"] = {"reason": "", "answer": "Look."}
        return Reply(json.dumps(ledger))

    def finder(request: ModelRequest) -> Reply:
        return Reply("Found it.") if "You find" in request.system else answer(request)

    with ProviderServer(finder) as server:
        url = server.url

        def run() -> Any:
            agents = [agent_at(url)("finder", "You find.")]
            return ask(MagenticOneGroupChat(agents, client_at(url)(), name="desk"))

        with tracefork.record(tape):
            recorded = run()
        server.stop()
        with tracefork.replay(tape, strict=True):
            assert run() == recorded
    agents = [path.split(" ▸ ")[1] for path in paths()]
    orchestrator = "agent:MagenticOneOrchestrator"
    assert agents == [orchestrator] * 3 + ["agent:finder"] + [orchestrator] * 2


def test_a_team_in_a_team_has_a_step_in_it(
    agent: Call, ask: Call, twice: Call, paths: Call, causes: Call, tape: Path
) -> None:
    """Its agents come after those of the outer team whose messages they read."""

    def run() -> Any:
        inner = RoundRobinGroupChat([agent("x", "@say X."), agent("y", "@say Y.")], max_turns=2)
        inner._name = "inner"
        return ask(RoundRobinGroupChat([agent("w", "@say W."), inner], max_turns=3, name="outer"))

    recorded, again = twice(run)
    assert recorded == again
    assert paths() == [
        f"team:outer ▸ agent:w ▸ {MODEL}",
        f"team:outer ▸ team:inner ▸ agent:x ▸ {MODEL}",
        f"team:outer ▸ team:inner ▸ agent:y ▸ {MODEL}",
        f"team:outer ▸ agent:w ▸ {MODEL}",
    ]
    assert causes() == [("x", ["w"]), ("y", ["x"]), ("w", ["y"])]
    with tracefork.Tape.open(tape) as opened:
        lanes = [exchange.lane.partition("/")[0] for exchange in opened.exchanges]
    assert lanes == ["main.w.1", "main.inner.1.x.1", "main.inner.1.y.1", "main.w.2"]


def test_a_team_inside_of_an_agent_has_a_step_in_it(
    agent: Call, client: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """The agent asks a model itself about what its team said."""

    def run() -> Any:
        team = RoundRobinGroupChat([agent("x", "@say X.")], max_turns=1, name="inner")
        return ask(SocietyOfMindAgent("mind", team=team, model_client=client()))

    recorded, again = twice(run)
    assert recorded == again
    inner = f"team:inner ▸ agent:x ▸ {MODEL}"
    assert paths() == [f"agent:mind ▸ {inner}", f"agent:mind ▸ {MODEL}"]


def test_a_team_in_a_runtime_of_the_program_has_its_steps(
    agent: Call, twice: Call, paths: Call, tape: Path
) -> None:
    """The runtime was started outside of the step of the team, and its tasks know nothing of it."""

    async def run() -> list[str]:
        runtime = SingleThreadedAgentRuntime()
        runtime.start()
        agents = [agent(name, "@say A.") for name in ("one", "two")]
        team = RoundRobinGroupChat(agents, max_turns=2, name="desk", runtime=runtime)
        results = [await team.run(task="Go on.") for _ in range(2)]
        await runtime.stop_when_idle()
        return [result.model_dump_json() for result in results]

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    names = ["one", "two"] * 2
    assert paths() == [f"team:desk ▸ agent:{name} ▸ {MODEL}" for name in names]
    with tracefork.Tape.open(tape) as opened:
        lanes = [exchange.lane.partition("/")[0] for exchange in opened.exchanges]
    assert lanes == ["main.one.1", "main.two.1", "main.one.2", "main.two.2"]


def test_two_equal_calls_of_an_agent_as_a_tool_get_their_own_answers(
    agent: Call, ask: Call, twice: Call, tape: Path
) -> None:
    """They run at once, and each run of the inner agent has a lane of its own."""

    def run() -> Any:
        calls = [f'@call {name} {{"task": "Hm."}}' for name in ("helper", "crew", "helper")]
        helper = AgentTool(agent("helper", "@say H."))
        crew = RoundRobinGroupChat([agent("member", "@say M.")], max_turns=1, name="crew")
        tools = [helper, TeamTool(crew, "crew", "Helps.")]
        boss = agent("boss", "\n".join([*calls, "@then", "@say Done."]), tools=tools)
        return ask(RoundRobinGroupChat([boss], max_turns=1, name="desk"))

    recorded, again = twice(run)
    assert recorded == again
    with tracefork.Tape.open(tape) as opened:
        lanes = {exchange.lane.partition("/")[0] for exchange in opened.exchanges}
    boss = "main.boss.1"
    assert lanes == {
        boss,
        f"{boss}.helper.1",
        f"{boss}.helper.2",
        f"{boss}.crew.1.member.1",
    }


def test_the_reader_of_events_never_sees_the_step_of_a_team(agent: Call, tape: Path) -> None:
    """The generators of a team share the context of their reader, who may stop at any event."""
    seen: list[object] = []

    async def read() -> None:
        team = RoundRobinGroupChat([agent("writer", "@say A.")], max_turns=1)
        async for event in team.run_stream(task="Go on."):
            seen.append(current_step.get())
            assert not isinstance(event, TaskResult) or len(seen) == 3

    with tracefork.record(tape):
        asyncio.run(read())
    assert seen == [None] * 3
    with tracefork.Tape.open(tape) as opened:
        assert [step.ended is not None for step in opened.steps] == [True] * 3
        assert [step.error for step in opened.steps] == [None] * 3
