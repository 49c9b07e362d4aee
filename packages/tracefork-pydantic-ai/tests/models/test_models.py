"""Each model of pydantic-ai replays without keys: whole, streamed, and attached."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_core.providers.decode import model_call
from tracefork_pydantic_ai import attach, detach
from tracefork_testkit import ProviderServer


def openai_chat(url: str) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(base_url=f"{url}/v1"))


def openai_responses(url: str) -> Any:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel("gpt-5-mini", provider=OpenAIProvider(base_url=f"{url}/v1"))


def anthropic(url: str) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(base_url=url))


def google(url: str) -> Any:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel("gemini-2.5-flash", provider=GoogleProvider(base_url=url))


def bedrock(url: str) -> Any:
    """Ask over boto3, which tracefork-bedrock records."""
    pytest.importorskip("boto3", reason="boto3 is installed beside the newest pydantic-ai")
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    provider = BedrockProvider(base_url=url, region_name="us-east-1")
    return BedrockConverseModel("anthropic.claude-sonnet-4-5-20250929-v1:0", provider=provider)


def groq(url: str) -> Any:
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    return GroqModel("llama-3.3-70b-versatile", provider=GroqProvider(base_url=url))


def mistral(url: str) -> Any:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    return MistralModel("mistral-large-latest", provider=MistralProvider(base_url=url))


def fallback(url: str) -> Any:
    """Ask one model after the other: the first is overloaded."""
    from openai import AsyncOpenAI
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=f"{url}/v1", max_retries=0)
    first = OpenAIChatModel("gpt-overloaded", provider=OpenAIProvider(openai_client=client))
    return FallbackModel(first, anthropic(url))


MODELS = (openai_chat, openai_responses, anthropic, google, bedrock, groq, mistral, fallback)

_DURATION = re.compile(r'"duration":"[^"]*"')
"""How long a failed attempt took: pydantic-ai measures it, and no model gets it."""


@pytest.mark.parametrize("way", ["whole", "streamed", "attached"])
@pytest.mark.parametrize("model", MODELS)
def test_a_model_replays_without_keys_and_network(
    model: Callable[[str], Any],
    way: str,
    server: ProviderServer,
    keys: None,
    twice: Callable[..., tuple[Any, Any]],
    ask: Callable[..., str],
    paths: Callable[[], list[str]],
    tape: Any,
) -> None:
    """Each request is one exchange, a call of a model and in one model step; ids are the same.

    An attached model needs no ambient patching. Its client is older than the session.
    """
    url = server.url
    if way == "attached":
        kept = attach(model(url))
        try:
            recorded, again = twice(lambda: ask(kept), ambient=False)
        finally:
            detach(kept)
    else:
        recorded, again = twice(lambda: ask(model(url), stream=way == "streamed"))
    assert "sunny in Rome" in recorded
    assert _DURATION.sub("", again) == _DURATION.sub("", recorded)
    with tracefork.Tape.open(tape) as opened:
        calls = [one for one in opened.exchanges if model_call(one) is not None]
    assert len(calls) == len(server.requests) == (4 if model is fallback else 2)
    steps = [path for path in paths() if "model:" in path]
    assert len(steps) == len(calls)
    assert all(path.count("model:") == 1 for path in steps)
