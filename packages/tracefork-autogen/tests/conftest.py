"""Run agents and teams whose models are on a server on loopback, and record and replay them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapters.fixtures import *  # noqa: F403 - the names of fixtures are those of arguments
from adapters.late_clients import pytest_unconfigure  # noqa: F401 - a hook of pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

API_KEY = "sk-none"


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what AutoGen does at each run, with tracefork and without it.

    It leaves the clients of a loop to the garbage collector, and expects dated names of models.
    """
    for ignored in (
        "ignore:unclosed:ResourceWarning",
        "ignore:Resolved model mismatch:UserWarning",
        "ignore:Pydantic serializer warnings:UserWarning",
    ):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture
def url(server: ProviderServer) -> str:
    """The URL of the server, which may have stopped."""
    return server.url


@pytest.fixture
def client(url: str) -> Callable[..., Any]:
    """Make a client of a model on the server: `client()`."""
    return client_at(url)


def client_at(url: str) -> Callable[..., Any]:
    """Return what makes clients that ask another server."""

    def make(model: str = "gpt-4o", **options: Any) -> Any:
        asked = {"base_url": f"{url}/v1", "api_key": API_KEY, **options}
        return OpenAIChatCompletionClient(model=model, **asked)

    return make


@pytest.fixture(name="client_at")
def _client_at() -> Callable[..., Any]:
    return client_at


def agent_at(url: str) -> Callable[..., Any]:
    """Return what makes agents that ask another server."""

    def make(name: str, instruction: str = "", **options: Any) -> Any:
        client = client_at(url)()
        return AssistantAgent(name, client, system_message=instruction or None, **options)

    return make


@pytest.fixture
def agent(url: str) -> Callable[..., Any]:
    """Make an agent that asks the server: `agent("writer", "@say hi", tools=[…])`."""
    return agent_at(url)


@pytest.fixture(name="agent_at")
def _agent_at() -> Callable[..., Any]:
    return agent_at


@pytest.fixture
def ask() -> Callable[..., Any]:
    """Ask a team or an agent one question, and return the result as JSON, with ids and times."""

    def run(asked: Any, task: Any = "Go on.") -> Any:
        return asyncio.run(asked.run(task=task)).model_dump_json()

    return run


@pytest.fixture
def causes(tape: Path) -> Callable[[], list[tuple[str, list[str]]]]:
    """Read which steps came after which others, in the order in which they began."""

    def read() -> list[tuple[str, list[str]]]:
        with tracefork.Tape.open(tape) as opened:
            names = {step.id: step.name for step in opened.steps}
            after: Any = [(step.name, step.detail.get("after")) for step in opened.steps]
            return [(name, [names[one] for one in steps]) for name, steps in after if steps]

    return read
