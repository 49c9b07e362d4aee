"""Run agents whose models are on a server on loopback, and record and replay them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from adapters.fixtures import *  # noqa: F403 - the names of fixtures are those of arguments
from strands import Agent
from strands.models.anthropic import AnthropicModel

from tracefork_testkit import ProviderServer


def pytest_configure(config: pytest.Config) -> None:
    """Ignore that Strands leaves the clients of some models to the garbage collector."""
    config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")


@pytest.fixture(scope="session", autouse=True)
def _collected() -> Iterator[None]:
    """Collect the last clients while the filter holds."""
    yield
    gc.collect()


@pytest.fixture
def agent(server: ProviderServer) -> Callable[..., Agent]:
    """Make an agent that asks the server: `agent("Billing", "@say hi", tools=[…])`."""
    url = server.url

    def make(name: str | None, instructions: str = "", **options: Any) -> Agent:
        client = {"base_url": url, "api_key": "none", "max_retries": 0}
        model = AnthropicModel(client_args=client, model_id="claude", max_tokens=100)
        given = {"model": model, "callback_handler": None, **options}
        return Agent(name=name, system_prompt=instructions, **given)

    return make
