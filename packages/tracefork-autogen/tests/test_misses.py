"""A divergence ends a team at once, in tools and in models, whatever its agents do with errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.teams import (
    DiGraphBuilder,
    GraphFlow,
    RoundRobinGroupChat,
    SelectorGroupChat,
    Swarm,
)
from autogen_core.tools import (
    FunctionTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    TextResultContent,
    ToolResult,
)

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]
SECONDS = 5


def alone(agents: list[Any], client: Call) -> Any:
    return agents[1]


def round_robin(agents: list[Any], client: Call) -> Any:
    return RoundRobinGroupChat(agents, max_turns=3)


def selector(agents: list[Any], client: Call) -> Any:
    def select(messages: Any) -> str:
        return "second" if messages[-1].source == "first" else "first"

    return SelectorGroupChat(agents, client(), max_turns=3, selector_func=select)


def swarm(agents: list[Any], client: Call) -> Any:
    return Swarm(agents, max_turns=3)


def graph(agents: list[Any], client: Call) -> Any:
    builder = DiGraphBuilder()
    for agent in agents:
        builder.add_node(agent)
    builder.add_edge(agents[0], agents[1])
    return GraphFlow(agents, builder.build())


def in_model(agent: Call, said: str) -> Any:
    return agent("second", f"@say {said}", handoffs=["first"])


def work(city: str) -> str:
    return city


CALL = '@call work {"city": "Rome"}\n@then\n@say Done.'


class Changing(StaticStreamWorkbench):
    """Gives a tool another argument than the model gave: it differs there and not before."""

    said = ""

    async def call_tool_stream(
        self, name: str, arguments: Mapping[str, Any] | None = None, *rest: Any, **options: Any
    ) -> AsyncGenerator[Any, None]:
        told = {"city": self.said}
        async for item in super().call_tool_stream(name, told, *rest, **options):
            yield item


class Raising(StaticWorkbench):
    """Calls a tool itself, so that its exception escapes the workbench."""

    said = ""

    async def call_tool(self, name: str, *rest: Any, **options: Any) -> Any:
        tool, token = self._tools[0], options["cancellation_token"]
        text = await tool.run_json({"city": self.said}, token)
        return ToolResult(name=name, result=[TextResultContent(content=text)])


def in_tool(agent: Call, said: str) -> Any:
    return _with(Changing, agent, said)


def in_workbench(agent: Call, said: str) -> Any:
    return _with(Raising, agent, said)


def _with(kind: Any, agent: Call, said: str) -> Any:
    workbench = kind([FunctionTool(work, "Works.")])
    workbench.said = said
    return agent("second", CALL, tools=None, workbench=workbench, handoffs=["first"])


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("where", [in_model, in_tool, in_workbench])
@pytest.mark.parametrize("make", [alone, round_robin, selector, swarm, graph])
def test_a_divergence_ends_a_team_at_once(
    agent: Call,
    client: Call,
    tape: Path,
    server: ProviderServer,
    make: Call,
    where: Call,
    streamed: bool,
) -> None:
    """No model is asked after it, and no agent waits for a result that never comes."""

    async def run(said: str) -> None:
        first = agent("first", "@call transfer_to_second {}\n@then\n@say Hi.", handoffs=["second"])
        team = make([first, where(agent, said)], client)
        if not streamed:
            await team.run(task="Go on.")
            return
        async for _ in team.run_stream(task="Go on."):
            pass

    async def in_time(said: str) -> None:
        (task,), pending = await asyncio.wait([asyncio.create_task(run(said))], timeout=SECONDS)
        assert not pending
        ended.append(type(task.exception()))

    ended: list[type] = []
    with tracefork.record(tape):
        asyncio.run(run("One"))
    asked = len(server.requests)
    with pytest.raises(tracefork.DivergenceError), tracefork.replay(tape):
        asyncio.run(in_time("Two"))
    assert ended == [tracefork.DivergenceError]
    assert len(server.requests) == asked
