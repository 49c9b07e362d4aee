"""Run the tests that every adapter must pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tracefork_pydantic_ai import attach, detach
from tracefork_testkit.conformance import API_KEY, AdapterConformance


class TestConformance(AdapterConformance):
    """An agent with one tool, whose model is OpenAI's."""

    adapter = "pydantic-ai"
    selectors: ClassVar = {
        "agent:helper": 0,
        "agent:helper:answer": 2,
        "node:ModelRequestNode 2": 2,
        "tool:lookup": 1,
    }

    @pytest.fixture(autouse=True)
    def _detached_at_the_end(self) -> Iterator[None]:
        self.attached: list[Any] = []
        yield
        for agent in self.attached:
            detach(agent)

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Any:
        client = AsyncOpenAI(base_url=f"{url}/v1", api_key=API_KEY)
        model = OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(openai_client=client))
        return Agent(model, name="helper", instructions="Help.", tools=[lookup])

    def attach(self, agent: Any) -> Any:
        self.attached.append(agent)
        return attach(agent)

    def run(self, agent: Any, question: str, mode: str) -> str:
        if mode == "sync":
            return str(agent.run_sync(question).output)
        if mode == "async":
            return str(asyncio.run(agent.run(question)).output)
        if "async" not in mode:
            return str(agent.run_stream_sync(question).get_output())
        return asyncio.run(self._streamed(agent, question))

    async def _streamed(self, agent: Any, question: str) -> str:
        async with agent.run_stream(question) as stream:
            async for _ in stream.stream_text(debounce_by=None):
                pass
            return str(await stream.get_output())
