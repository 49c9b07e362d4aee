"""Run agents whose models are on a server on loopback, and record and replay them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from adapters.fixtures import *  # noqa: F403 - the names of fixtures are those of arguments
from adapters.late_clients import pytest_unconfigure  # noqa: F401 - a hook of pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tracefork_testkit import ProviderServer


def pytest_configure(config: pytest.Config) -> None:
    """Ignore that clients are left to the garbage collector, with tracefork and without it."""
    config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")


@pytest.fixture
def url(server: ProviderServer) -> str:
    """The URL of the server, which may have stopped."""
    return f"{server.url}/v1"


def model_at(url: str, name: str = "gpt-5-mini", *, chat: bool = False) -> Any:
    """Return a model that asks a server."""
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    kind = OpenAIChatModel if chat else OpenAIResponsesModel
    return kind(name, provider=OpenAIProvider(openai_client=client))


def agent_of(model: Callable[[], Any]) -> Callable[..., Any]:
    """Return what makes agents: `agent("writer", "@say hi", tools=[…])`."""

    def make(name: str, instructions: str = "", **options: Any) -> Any:
        given = {"model": model(), **options}
        return Agent(name=name, instructions=instructions or None, **given)

    return make


@pytest.fixture
def model(url: str) -> Callable[..., Any]:
    """Make a model that asks the server."""
    return partial(model_at, url)


@pytest.fixture
def agent(model: Callable[..., Any]) -> Callable[..., Any]:
    """Make an agent that asks the server."""
    return agent_of(model)


@pytest.fixture
def agent_at() -> Callable[[str], Callable[..., Any]]:
    """Return what makes agents that ask another server."""
    return lambda url: agent_of(partial(model_at, f"{url}/v1"))


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Run an agent to its end on an event loop of its own, and return its messages as JSON."""

    def run(agent: Any, question: str = "Go on.", **options: Any) -> str:
        result = asyncio.run(agent.run(question, **options))
        return str(result.all_messages_json().decode())

    return run
