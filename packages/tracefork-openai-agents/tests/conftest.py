"""Run agents whose models are on a server on loopback, and record and replay them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest
from adapters.fixtures import *  # noqa: F403 - the names of fixtures are those of arguments
from adapters.late_clients import pytest_unconfigure  # noqa: F401 - a hook of pytest

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"  # No test posts to the host of OpenAI.

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
)
from openai import AsyncOpenAI

from tracefork_testkit import ProviderServer


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what the SDK does at each run, with tracefork and without it.

    `Runner.run_sync` uses an event loop again after it has shut down its generators, and clients
    are left to the garbage collector.
    """
    for ignored in (
        "ignore:asynchronous generator:ResourceWarning",
        "ignore:unclosed:ResourceWarning",
    ):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture
def url(server: ProviderServer) -> str:
    """The URL of the server, which may have stopped."""
    return f"{server.url}/v1"


@pytest.fixture
def agent(url: str) -> Callable[..., Any]:
    """Make an agent that asks the server: `agent("Billing", "@say hi", tools=[…])`."""

    def make(name: str, instructions: str = "", *, chat: bool = False, **options: Any) -> Any:
        client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        kind = OpenAIChatCompletionsModel if chat else OpenAIResponsesModel
        given = {"model": kind("gpt-5-mini", client), **options}
        return Agent(name=name, instructions=instructions, **given)

    return make


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Run an agent to its end on an event loop of its own, and return the result."""

    def run(agent: Any, question: Any, config: RunConfig | None = None, **options: Any) -> Any:
        return asyncio.run(Runner.run(agent, question, run_config=config, **options))

    return run
