"""Share one client of each SDK, because building one loads every root certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import anthropic
import openai
import pytest

from tracefork_testkit import ProviderServer


@pytest.fixture(scope="session")
def openai_at() -> Iterator[Callable[[ProviderServer], openai.OpenAI]]:
    """Point the OpenAI SDK, without retries, at a server."""
    with openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9", max_retries=0) as sdk:
        yield lambda server: sdk.with_options(base_url=f"{server.url}/v1")


@pytest.fixture(scope="session")
def anthropic_at() -> Iterator[Callable[[ProviderServer], anthropic.Anthropic]]:
    """Point the Anthropic SDK, without retries, at a server."""
    with anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:9", max_retries=0) as sdk:
        yield lambda server: sdk.with_options(base_url=server.url)
