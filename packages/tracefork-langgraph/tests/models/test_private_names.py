"""Private attributes in which today's SDKs keep their HTTP clients.

`clients.py` searches everything that a model's fields lead to, so it still finds a client that
moved. It does not find one that is created in another way. Each test fails by saying what moved.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_langgraph import bind
from tracefork_langgraph.clients import holders, is_http_client

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

OPENAI = ["AsyncOpenAI._client", "OpenAI._client"]
KEPT = {
    "openai": OPENAI,
    "responses": OPENAI,
    "azure": ["AsyncAzureOpenAI._client", "AzureOpenAI._client"],
    "anthropic": ["Anthropic._client", "AsyncAnthropic._client"],
    "google": ["BaseApiClient._async_httpx_client", "BaseApiClient._httpx_client"],
    "ollama": ["AsyncClient._client", "Client._client"],
    "mistral": ["ChatMistralAI.async_client", "ChatMistralAI.client"],
    "groq": ["AsyncGroq._client", "Groq._client"],
    "deepseek": OPENAI,
    "xai": sorted(OPENAI * 2),  # `client` and `root_client` are two SDK clients.
    "together": sorted(OPENAI * 2),
    "fireworks": ["AsyncFireworks._client", "Fireworks._client"],
    "openrouter": ["SDKConfiguration.async_client", "SDKConfiguration.client"],
}


def test_model_keeps_its_clients_in_the_known_attributes(chat: Any, name: str) -> None:
    """clients.py finds one for sync and one for async, in attributes that can be replaced."""
    found = sorted(
        f"{type(holder).__name__}.{attribute}"
        for holder in holders(chat(name))
        for attribute, value in vars(holder).items()
        if is_http_client(value)
    )
    assert found == KEPT[name], f"the HTTP clients of {name} moved: are all of them found?"


def test_google_genai_gets_its_aiohttp_sessions_from_one_method(chat: Any) -> None:
    """chat_models.py replaces BaseApiClient._get_aiohttp_session."""
    api = chat("google").client._api_client
    assert api._use_aiohttp(), "google-genai no longer prefers aiohttp where it is installed"
    get = getattr(type(api), "_get_aiohttp_session", None)
    assert inspect.iscoroutinefunction(get), "BaseApiClient._get_aiohttp_session moved"
    assert [*inspect.signature(get).parameters] == ["self"]
    makers = [n for n, f in inspect.getmembers(type(api)) if _makes_sessions(f)]
    assert makers == ["_get_aiohttp_session"], "google-genai makes sessions of aiohttp elsewhere"


def _makes_sessions(function: object) -> bool:
    return inspect.isfunction(function) and "ClientSession" in function.__code__.co_names


def test_bind_refuses_a_model_that_uses_botocore() -> None:
    """The error names the planned package. The same provider over an HTTP client is bound."""
    bedrock = import_module("langchain_aws")
    place: dict[str, Any] = {
        "region_name": "us-east-1",
        "aws_access_key_id": "none",
        "aws_secret_access_key": "none",
    }
    with pytest.raises(tracefork.UsageError, match=r"ChatBedrockConverse.*tracefork-bedrock"):
        bind(bedrock.ChatBedrockConverse(model="m", disable_streaming=False, **place))
    bind(bedrock.ChatAnthropicBedrock(model="m", **place))
