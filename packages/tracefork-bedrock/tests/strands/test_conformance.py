"""Run the tests that every adapter must pass, with agents of Strands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import boto3
import pytest
from strands import Agent, tool
from strands.models import BedrockModel

from tracefork_bedrock.strands import attach, detach
from tracefork_testkit.conformance import API_KEY, AdapterConformance


@pytest.mark.many_processes
class TestBedrock(AdapterConformance):
    """An agent with one tool and a model of Bedrock. Other tests here use one of Anthropic's."""

    adapter = "strands"
    selectors: ClassVar = {"agent:Helper": 0, "turn:turn 2": 2, "tool:lookup": 1}

    @pytest.fixture(autouse=True)
    def _detached_at_the_end(self) -> Iterator[None]:
        self.attached: list[Any] = []
        yield
        for agent in self.attached:
            detach(agent)

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Any:
        session = boto3.Session(API_KEY, "secret-of-the-example", region_name="us-east-1")
        return Agent(
            name="Helper",
            system_prompt="Help.",
            model=BedrockModel(boto_session=session, endpoint_url=url, model_id="amazon.nova-lite"),
            tools=[tool(lookup)],
            callback_handler=None,
        )

    def attach(self, agent: Any) -> Any:
        self.attached.append(agent)
        return attach(agent)

    def run(self, agent: Any, question: str, mode: str) -> str:
        if mode == "sync":
            return str(agent(question))
        if mode == "async":
            return str(asyncio.run(agent.invoke_async(question)))
        return asyncio.run(self._streamed(agent, question))

    async def _streamed(self, agent: Any, question: str) -> str:
        events = [event async for event in agent.stream_async(question)]
        return str(events[-1]["result"])
