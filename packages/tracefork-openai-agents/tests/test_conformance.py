"""Run the tests that every adapter must pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
)
from openai import AsyncOpenAI

from tracefork_openai_agents import attach, detach
from tracefork_testkit.conformance import API_KEY, AdapterConformance


class _Conformance(AdapterConformance):
    """An agent with one tool; a subclass says which model it uses."""

    adapter = "openai-agents"

    @pytest.fixture(autouse=True)
    def _detached_at_the_end(self) -> Iterator[None]:
        self.attached: list[Any] = []
        yield
        for agent in self.attached:
            detach(agent)

    def model(self, client: AsyncOpenAI) -> Model:
        raise NotImplementedError

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Any:
        client = AsyncOpenAI(base_url=f"{url}/v1", api_key=API_KEY)
        return Agent(
            name="Helper",
            instructions="Help.",
            model=self.model(client),
            tools=[function_tool(lookup)],
        )

    def attach(self, agent: Any) -> Any:
        self.attached.append(agent)
        return attach(agent)

    def run(self, agent: Any, question: str, mode: str) -> str:
        if mode == "sync":
            return str(Runner.run_sync(agent, question).final_output)
        if mode == "async":
            return str(asyncio.run(Runner.run(agent, question)).final_output)
        return asyncio.run(self._streamed(agent, question))

    async def _streamed(self, agent: Any, question: str) -> str:
        stream = Runner.run_streamed(agent, question)
        async for _ in stream.stream_events():
            pass
        return str(stream.final_output)


class TestResponses(_Conformance):
    """OpenAI's Responses API, the default."""

    def model(self, client: AsyncOpenAI) -> Model:
        return OpenAIResponsesModel("gpt-5-mini", client)


class TestChatCompletions(_Conformance):
    """The API that other providers offer too."""

    def model(self, client: AsyncOpenAI) -> Model:
        return OpenAIChatCompletionsModel("gpt-5-mini", client)
