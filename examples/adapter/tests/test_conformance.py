"""Run the tests that every adapter must pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from acme_agents import Agent
from tracefork_acme import attach

from tracefork_testkit.conformance import API_KEY, AdapterConformance


class TestConformance(AdapterConformance):
    """An agent of acme-agents."""

    adapter = "acme"
    selectors: ClassVar = {"agent:helper": 0, "agent:helper:answer": 2}

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Agent:
        return Agent("helper", url=f"{url}/v1", key=API_KEY, tools=(lookup,))

    def attach(self, agent: Agent) -> Agent:
        return attach(agent)

    def run(self, agent: Agent, question: str, mode: str) -> str:
        stream = "stream" in mode
        if "async" in mode:
            return asyncio.run(agent.arun(question, stream=stream))
        return agent.run(question, stream=stream)
