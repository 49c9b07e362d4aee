"""Run the tests that every adapter must pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from tracefork_crewai import attach, detach
from tracefork_testkit.conformance import API_KEY, AdapterConformance


class TestConformance(AdapterConformance):
    """A crew of one agent that uses OpenAI's SDK."""

    adapter = "crewai"
    selectors: ClassVar = {"crew": 0, "agent:Helper": 0, "agent:Helper:answer": 2}

    @pytest.fixture(autouse=True)
    def _detached_at_the_end(self) -> Iterator[None]:
        self.attached: list[Any] = []
        yield
        for agent in self.attached:
            detach(agent)

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Any:
        llm = LLM(model="openai/some-model", base_url=f"{url}/v1", api_key=API_KEY)
        helper = Agent(
            role="Helper",
            goal="help",
            backstory="You help.",
            llm=llm,
            tools=[tool("lookup")(lookup)],
        )
        task = Task(description="{question}", expected_output="an answer", agent=helper)
        return Crew(agents=[helper], tasks=[task])

    def attach(self, agent: Any) -> Any:
        self.attached.append(agent)
        return attach(agent)

    def run(self, agent: Any, question: str, mode: str) -> str:
        inputs = {"question": question}
        if mode == "sync":
            return str(agent.kickoff(inputs).raw)
        if mode == "async":
            return str(asyncio.run(agent.akickoff(inputs)).raw)
        agent.stream = True
        if mode == "stream":
            stream = agent.kickoff(inputs)
            return "".join(chunk.content for chunk in stream) + str(stream.result.raw)
        return asyncio.run(self._whole_stream(agent, inputs))

    async def _whole_stream(self, agent: Any, inputs: Any) -> str:
        stream = await agent.akickoff(inputs)
        heard = [chunk.content async for chunk in stream]
        return "".join(heard) + str(stream.result.raw)
