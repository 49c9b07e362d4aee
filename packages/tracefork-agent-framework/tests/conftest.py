"""Run agents and workflows whose models are on a server on loopback, and record and replay them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from adapters.fixtures import *  # noqa: F403 - the names of fixtures are those of arguments
from adapters.late_clients import pytest_unconfigure  # noqa: F401 - a hook of pytest
from agent_framework import Agent
from agent_framework_openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI

from tracefork_testkit import ProviderServer


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what the framework does at each run, with tracefork and without it.

    Clients are left to the garbage collector, and some features are experimental.
    """
    for ignored in (
        "ignore:unclosed:ResourceWarning",
        r"ignore:\[[A-Z_]+\]:Warning",
    ):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture
def url(server: ProviderServer) -> str:
    """The URL of the server, which may have stopped."""
    return f"{server.url}/v1"


def agent_at(url: str) -> Callable[..., Any]:
    """Return what makes agents that ask a server."""

    def make(
        name: str | None, instructions: str = "", *, chat: bool = False, **options: Any
    ) -> Any:
        client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        kind = OpenAIChatCompletionClient if chat else OpenAIChatClient
        model = kind(model="gpt-5-mini", async_client=client)
        # Each request holds the whole conversation, which the scripted provider follows.
        given = {"default_options": {"store": False}, **options}
        return Agent(client=model, name=name, instructions=instructions, **given)

    return make


@pytest.fixture(name="agent_at")
def _agent_at() -> Callable[..., Any]:
    return agent_at


@pytest.fixture
def agent(url: str) -> Callable[..., Any]:
    """Make an agent that asks the server: `agent("writer", "@say hi", tools=[…])`."""
    return agent_at(url)


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Run an agent or a workflow to its end on an event loop of its own; return its result."""

    def run(root: Any, question: Any = "Go on.", *, stream: bool = False, **options: Any) -> Any:
        async def to_the_end() -> Any:
            if not stream:
                return await root.run(question, **options)
            reading = root.run(question, stream=True, **options)
            async for _ in reading:
                pass
            return await reading.get_final_response()

        return asyncio.run(to_the_end())

    return run


def answers_of(response: Any) -> list[Any]:
    """Return what the model got from the tools."""
    return [
        content.to_dict()
        for message in response.messages
        for content in message.contents
        if content.type == "function_result"
    ]
