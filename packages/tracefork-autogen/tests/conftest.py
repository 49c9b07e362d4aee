"""Run agents and teams whose models are on a server on loopback, and record and replay them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from adapters.fixtures import *  # noqa: F403 - the names of fixtures are those of arguments
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from tracefork_testkit import ProviderServer

API_KEY = "sk-none"


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what AutoGen does at each run, with tracefork and without it.

    It leaves the clients of a loop to the garbage collector, and expects dated names of models.
    """
    for ignored in (
        "ignore:unclosed:ResourceWarning",
        "ignore:Resolved model mismatch:UserWarning",
    ):
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture(scope="session", autouse=True)
def _collected() -> Iterator[None]:
    """Collect the last clients while the filters hold."""
    yield
    gc.collect()


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


@pytest.fixture
def agent(client: Callable[..., Any]) -> Callable[..., Any]:
    """Make an agent that asks the server: `agent("writer", "@say hi", tools=[…])`."""

    def make(name: str, instruction: str = "", **options: Any) -> Any:
        return AssistantAgent(
            name, client(), system_message=instruction or None, **{"tools": [], **options}
        )

    return make
