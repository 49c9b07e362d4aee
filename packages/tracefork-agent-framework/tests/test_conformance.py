"""Run the tests that every adapter must pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from agent_framework import Agent
from agent_framework_openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI

from tracefork_agent_framework import attach, detach
from tracefork_testkit.conformance import API_KEY, AdapterConformance


class _Conformance(AdapterConformance):
    """An agent with one tool; a subclass says which client it uses."""

    adapter = "agent-framework"
    selectors: ClassVar = {"agent:helper": 0, "agent:helper:answer": 2, "tool:lookup": 1}
    client: ClassVar[Any]

    @pytest.fixture(autouse=True)
    def _detached_at_the_end(self) -> Iterator[None]:
        self.attached: list[Any] = []
        yield
        for agent in self.attached:
            detach(agent)

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Any:
        openai = AsyncOpenAI(base_url=f"{url}/v1", api_key=API_KEY)
        client = self.client(model="gpt-5-mini", async_client=openai)
        return Agent(
            client=client,
            name="helper",
            instructions="Help.",
            tools=[lookup],
            default_options={"store": False},  # Each request holds the whole conversation.
        )

    def attach(self, agent: Any) -> Any:
        self.attached.append(agent)
        return attach(agent)

    def run(self, agent: Any, question: str, mode: str) -> str:
        if "stream" in mode:
            return asyncio.run(self._streamed(agent, question))
        return str(asyncio.run(agent.run(question)).text)

    async def _streamed(self, agent: Any, question: str) -> str:
        stream = agent.run(question, stream=True)
        async for _ in stream:
            pass
        return str((await stream.get_final_response()).text)


class TestResponses(_Conformance):
    """OpenAI's Responses API, the default."""

    client = OpenAIChatClient


@pytest.mark.many_processes  # The lowest version runs the other one.
class TestChatCompletions(_Conformance):
    """The API that other providers offer too.

    Other processes and blame see no more of it than of the default.
    """

    client = OpenAIChatCompletionClient
    test_another_process_agrees_on_steps = None  # type: ignore[assignment]
    test_blame_by_agent_names_the_planted_step = None  # type: ignore[assignment]
