"""A divergence ends the run at once, whatever plugins, nodes and agents do with errors."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import START, RetryConfig, Workflow, node
from google.genai import types

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # It is deprecated in favour of workflows.
    from google.adk.agents.parallel_agent import ParallelAgent

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]
Make = Callable[[Call, str, str], Any]


class Answering(BasePlugin):
    """Counts errors, and answers those of models."""

    def __init__(self) -> None:
        super().__init__("answering")
        self.errors = 0

    async def on_tool_error_callback(self, *, error: BaseException, **_: Any) -> None:
        if not isinstance(error, asyncio.CancelledError):
            self.errors += 1

    async def on_model_error_callback(self, **_: Any) -> LlmResponse:
        self.errors += 1
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Hm.")]))


def model(agent: Call, said: str, url: str) -> Any:
    return agent("helper", f"@say {said}")


def tool(agent: Call, said: str, url: str) -> Any:
    """A callback changes the argument, so that it differs at the tool and not before."""

    def work(city: str) -> str:
        return city

    def change(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        args["city"] = said

    words = '@call work {"city": "Rome"}\n@then\n@say Done.'
    return agent("helper", words, tools=[work], before_tool_callback=change)


def parallel(agent: Call, said: str, url: str) -> Any:
    agents = [agent("slow", "@slow 0.1\n@say A."), agent("fast", f"@say {said}")]
    return ParallelAgent(name="both", sub_agents=agents)


def agent_tool(agent: Call, said: str, url: str) -> Any:
    helper = AgentTool(agent("inner", f"@say {said}", description="Helps."))
    return agent("helper", '@call inner {"request": "Hm."}\n@then\n@say Done.', tools=[helper])


def sub_agent(agent: Call, said: str, url: str) -> Any:
    """ADK makes a text for the model of each error of such an agent."""
    inner = agent("inner", f"@say {said}", mode="single_turn", description="Helps.")
    words = '@call inner {"request": "Hm."}\n@then\n@say Done.'
    return agent("helper", words, sub_agents=[inner])


def retried_node(agent: Call, said: str, url: str) -> Any:
    async def fetch(node_input: Any) -> str:
        async with httpx.AsyncClient() as client:
            return (await client.get(f"{url}/echo/{said}")).reason_phrase

    retries = RetryConfig(max_attempts=3, initial_delay=30)
    return Workflow(name="news", edges=[(START, node(fetch, retry_config=retries))])


@pytest.mark.parametrize("make", [model, tool, parallel, agent_tool, sub_agent, retried_node])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_divergence_ends_the_run_at_once(
    agent: Call, run_events: Call, tape: Path, server: ProviderServer, make: Make
) -> None:
    """It is neither retried nor told to a model, and no event after it is given."""
    answering = Answering()

    async def run(said: str) -> None:
        plugins = [answering, ReflectAndRetryToolPlugin(max_retries=3)]
        async with run_events(make(agent, said, server.url), plugins=plugins) as events:
            async for event in events:
                assert event.error_code is None
                assert "reflection_guidance" not in str(event)

    with tracefork.record(tape):
        asyncio.run(run("One"))
    asked = len(server.requests)

    def diverge() -> None:
        with tracefork.replay(tape):
            try:
                asyncio.run(asyncio.wait_for(run("Two"), 5))
            except Exception as error:
                ended.append(type(error))  # The session would raise its own error instead.
                raise

    ended: list[type] = []
    with pytest.raises(tracefork.DivergenceError):
        diverge()
    assert ended == [tracefork.DivergenceError]
    assert (len(server.requests), answering.errors) == (asked, 0)
