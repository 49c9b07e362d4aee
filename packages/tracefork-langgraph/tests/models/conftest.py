"""Every chat model that has an HTTP client, and the ways to call one.

The packages of the providers come with the extra `test-models`: `tox -e langgraph-models`.
"""

from __future__ import annotations

import asyncio
import functools
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core._api import LangChainBetaWarning

from tracefork_langgraph import unbind
from tracefork_langgraph.clients import held_clients
from tracefork_testkit import ProviderServer


@dataclass(frozen=True, slots=True)
class Kind:
    """A chat model: its class, LangChain's name of its provider, and the option for its URL."""

    model: str
    provider: str
    url: str
    path: str = ""
    options: dict[str, Any] = field(default_factory=dict)


KEY = {"api_key": "none"}
KINDS = {
    "openai": Kind("ChatOpenAI", "openai", "base_url", "/v1", KEY),
    "responses": Kind(
        "ChatOpenAI", "openai", "base_url", "/v1", {**KEY, "use_responses_api": True}
    ),
    "azure": Kind(
        "AzureChatOpenAI",
        "azure_openai",
        "azure_endpoint",
        "",
        {**KEY, "azure_deployment": "m", "api_version": "2024-10-21"},
    ),
    "anthropic": Kind("ChatAnthropic", "anthropic", "base_url", "", KEY),
    "google": Kind("ChatGoogleGenerativeAI", "google_genai", "base_url", "", KEY),
    "ollama": Kind("ChatOllama", "ollama", "base_url"),
    "mistral": Kind("ChatMistralAI", "mistralai", "base_url", "/v1", KEY),
    "groq": Kind("ChatGroq", "groq", "base_url", "", KEY),
    "deepseek": Kind("ChatDeepSeek", "deepseek", "api_base", "/v1", KEY),
    "xai": Kind("ChatXAI", "xai", "xai_api_base", "/v1", KEY),
    "together": Kind("ChatTogether", "together", "base_url", "/v1", KEY),
    "fireworks": Kind("ChatFireworks", "fireworks", "base_url", "", KEY),
    "openrouter": Kind("ChatOpenRouter", "openrouter", "base_url", "/v1", KEY),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `name` once for each kind of model."""
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", KINDS)


@pytest.fixture
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for the whole test: the async clients of a model belong to one loop."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def chat(server: ProviderServer, loop: asyncio.Runner) -> Iterator[Callable[..., Any]]:
    """Make a chat model of a kind that calls the server, or another address."""
    models: list[Any] = []

    def make(name: str, url: str | None = None, **options: Any) -> Any:
        kind = KINDS[name]
        where = {kind.url: f"{url or server.url}{kind.path}"}
        options = {**where, **kind.options, **options}
        models.append(init_chat_model("m", model_provider=kind.provider, **options))
        assert type(models[-1]).__name__ == kind.model
        return models[-1]

    yield make
    loop.run(_close(models))


async def _close(models: list[Any]) -> None:
    """Close the connections, which most SDKs leave open. The clients stay: they may be cached."""
    for model in models:
        clients: set[Any] = {reference.value for reference in held_clients(unbind(model))}
        for client in clients:
            for transport in filter(None, (client._transport, *client._mounts.values())):
                if hasattr(transport, "aclose"):
                    await transport.aclose()
                if hasattr(transport, "close"):
                    transport.close()
        if type(model).__name__ == "ChatGoogleGenerativeAI":
            for session in model.client._api_client._aiohttp_sessions.values():
                await session.close()


@pytest.fixture
def ask(loop: asyncio.Runner) -> Callable[..., list[str]]:
    """Call a model in one way, and return its answer piece by piece."""
    return functools.partial(_ask, loop)


def _ask(loop: asyncio.Runner, model: Any, way: str, prompt: str = "hello") -> list[str]:
    match way:
        case "invoke":
            said = [model.invoke(prompt)]
        case "ainvoke":
            said = [loop.run(model.ainvoke(prompt))]
        case "stream":
            said = list(model.stream(prompt))
        case "astream":
            said = loop.run(_all(model.astream(prompt)))
        case "astream_events":
            events = loop.run(_all(model.astream_events(prompt, version="v2")))
            ends = (event for event in events if event["event"] == "on_chat_model_end")
            said = [event["data"]["output"] for event in ends]
        case "stream_events":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LangChainBetaWarning)
                said = [model.stream_events(prompt, version="v3").output]
    return [str(message.text) for message in said]


async def _all(stream: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in stream]


@pytest.fixture
def classes() -> set[str]:
    """The names of all classes of chat models that are tested."""
    return {kind.model for kind in KINDS.values()}
