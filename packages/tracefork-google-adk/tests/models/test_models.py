"""Each model of ADK is recorded and replayed without keys, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import httpx2
import pytest
from google.adk.models import Gemini
from google.adk.models.apigee_llm import ApigeeLlm
from google.genai import types

import tracefork_core as tracefork
from tracefork_core.providers.decode import model_call
from tracefork_testkit import ProviderServer


def gemini(url: str) -> Any:
    """Ask over aiohttp, which google-genai takes by itself."""
    return Gemini(model="gemini-2.5-flash", base_url=url)


def gemini_over_httpx(url: str) -> Any:
    """Ask over httpx, as google-genai does where aiohttp is not installed."""
    options = types.HttpOptions(
        base_url=url, async_client_args={"transport": httpx.AsyncHTTPTransport()}
    )
    return Gemini(model="gemini-2.5-flash", client_kwargs={"http_options": options})


def gemini_over_httpx2(url: str) -> Any:
    """Ask over clients of httpx2 that the user made."""
    options = types.HttpOptions(
        base_url=url, httpx_client=httpx2.Client(), httpx_async_client=httpx2.AsyncClient()
    )
    return Gemini(model="gemini-2.5-flash", client_kwargs={"http_options": options})


def anthropic(url: str) -> Any:
    """Ask Anthropic itself."""
    from anthropic import AsyncAnthropic
    from google.adk.models.anthropic_llm import AnthropicLlm

    return AnthropicLlm(model="claude-sonnet-4-5", client=AsyncAnthropic(base_url=url))


def openai_chat(url: str) -> Any:
    """Ask for chat completions."""
    from google.adk.integrations.openai import OpenAILlm

    return OpenAILlm(model="gpt-5-mini", base_url=f"{url}/v1")


def openai_responses(url: str) -> Any:
    """Ask for responses."""
    from google.adk.integrations.openai import OpenAIResponsesLlm

    return OpenAIResponsesLlm(model="gpt-5-mini", base_url=f"{url}/v1")


def litellm_openai(url: str) -> Any:
    """Ask through LiteLLM and its transport of aiohttp."""
    from google.adk.models.lite_llm import LiteLlm

    return LiteLlm(model="openai/gpt-5-mini", api_base=f"{url}/v1")


def litellm_anthropic(url: str) -> Any:
    """Ask another provider through LiteLLM."""
    from google.adk.models.lite_llm import LiteLlm

    return LiteLlm(model="anthropic/claude-sonnet-4-5", api_base=url)


def litellm_gemini(url: str) -> Any:
    """Ask a provider whose calls of tools have no ids: LiteLLM makes them up."""
    from google.adk.models.lite_llm import LiteLlm

    return LiteLlm(model="gemini/gemini-2.5-flash", api_base=f"{url}/v1beta")


def apigee(url: str) -> Any:
    """Ask Gemini through a proxy."""
    return ApigeeLlm(model="apigee/gemini/v1beta/gemini-2.5-flash", proxy_url=url)


def apigee_chat(url: str) -> Any:
    """Ask OpenAI through a proxy, with a client of ADK's own."""
    return ApigeeLlm(model="apigee/openai/gpt-5-mini", proxy_url=f"{url}/v1")


def fallback(url: str) -> Any:
    """Ask one model after the other: the first is overloaded."""
    from google.adk.models import FallbackModel

    return FallbackModel(models=[Gemini(model="gemini-overloaded", base_url=url), openai_chat(url)])


MODELS = (
    *((gemini, stream) for stream in (False, True)),
    *((anthropic, stream) for stream in (False, True)),
    *((litellm_openai, True), (litellm_anthropic, False), (litellm_gemini, True)),
    *((gemini_over_httpx, True), (gemini_over_httpx2, True), (openai_chat, True)),
    *((openai_responses, True), (apigee, False), (apigee_chat, True), (fallback, False)),
)
"""Models, and whether they are streamed."""


@pytest.mark.parametrize(
    ("model", "stream"), MODELS, ids=[f"{model.__name__}-{stream}" for model, stream in MODELS]
)
def test_a_model_replays_without_keys_and_network(
    model: Callable[[str], Any],
    stream: bool,
    server: ProviderServer,
    twice: Callable[..., tuple[Any, Any]],
    ask: Callable[..., list[str]],
    tape: Any,
) -> None:
    """Each request is one exchange and a call of a model; ids and times of events are the same."""
    if model.__name__.startswith("litellm"):
        pytest.importorskip("litellm", reason="LiteLLM is in the environment of the newest version")
    url = server.url
    recorded, again = twice(lambda: ask(model(url), stream=stream))
    assert any("sunny in Rome" in event for event in recorded)
    assert again == recorded
    with tracefork.Tape.open(tape) as opened:
        calls = [one for one in opened.exchanges if model_call(one) is not None]
    assert len(calls) == len(server.requests) == (4 if model is fallback else 2)
