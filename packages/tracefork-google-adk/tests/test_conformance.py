"""Run the tests that every adapter must pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.google_llm import Gemini
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from tracefork_google_adk import attach, detach
from tracefork_testkit.conformance import API_KEY, AdapterConformance


class TestConformance(AdapterConformance):
    """An agent with one tool, whose model is Gemini."""

    adapter = "google-adk"
    selectors: ClassVar = {"agent:helper": 0, "agent:helper:answer": 2, "tool:lookup": 1}

    @pytest.fixture(autouse=True)
    def _detached_at_the_end(self) -> Iterator[None]:
        self.attached: list[Any] = []
        yield
        for agent in self.attached:
            detach(agent)

    def make_agent(self, url: str, lookup: Callable[[], str]) -> Any:
        model = Gemini(model="gemini-2.5-flash", base_url=url, client_kwargs={"api_key": API_KEY})
        return LlmAgent(name="helper", instruction="Help.", model=model, tools=[lookup])

    def attach(self, agent: Any) -> Any:
        self.attached.append(agent)
        return attach(agent)

    def run(self, agent: Any, question: str, mode: str) -> str:
        service = InMemorySessionService()
        runner = Runner(app_name="desk", agent=agent, session_service=service)
        asyncio.run(service.create_session(app_name="desk", user_id="ann", session_id="s"))
        how = StreamingMode.SSE if "stream" in mode else StreamingMode.NONE
        asked: Any = {
            "user_id": "ann",
            "session_id": "s",
            "new_message": types.Content(role="user", parts=[types.Part(text=question)]),
            "run_config": RunConfig(streaming_mode=how),
        }
        if "async" not in mode:
            return _text(list(runner.run(**asked)))
        return asyncio.run(self._async(runner, asked))

    async def _async(self, runner: Runner, asked: Any) -> str:
        return _text([event async for event in runner.run_async(**asked)])


def _text(events: list[Any]) -> str:
    parts = [part for part in events[-1].content.parts if part.text]
    return "".join(part.text for part in parts)
