"""Run the tests that every adapter must pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

from tracefork_autogen import attach, detach
from tracefork_testkit.conformance import API_KEY, AdapterConformance


class TestConformance(AdapterConformance):
    """An agent with one tool. In async modes it is in a team."""

    adapter = "autogen"
    selectors: ClassVar = {"agent:helper": 0, "agent:helper:answer": 2, "tool:lookup": 1}

    @pytest.fixture(autouse=True)
    def _detached_at_the_end(self) -> Iterator[None]:
        self.attached: list[Any] = []
        yield
        for agent in self.attached:
            detach(agent)

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Any:
        client = OpenAIChatCompletionClient(
            model="gpt-4o", base_url=f"{url}/v1", api_key=API_KEY, max_retries=2
        )
        options: Any = {"tools": [lookup], "reflect_on_tool_use": True, "system_message": "Help."}
        return AssistantAgent("helper", client, **options)

    def attach(self, agent: Any) -> Any:
        self.attached.append(agent)
        return attach(agent)

    def run(self, agent: Any, question: str, mode: str) -> str:
        agent._model_client_stream = "stream" in mode
        runner = agent
        if "async" in mode:
            runner = RoundRobinGroupChat([agent], max_turns=1)
        result = asyncio.run(self._result(runner, question, streamed="stream" in mode))
        return str(result.messages[-1].content)

    async def _result(self, runner: Any, question: str, *, streamed: bool) -> TaskResult:
        if not streamed:
            return await runner.run(task=question)
        (result,) = [
            event
            async for event in runner.run_stream(task=question)
            if isinstance(event, TaskResult)
        ]
        return result
