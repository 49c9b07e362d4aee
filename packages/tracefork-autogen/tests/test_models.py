"""Model calls have steps, whichever class of client makes them, whole and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from autogen_core.models import ChatCompletionClient, CreateResult, ModelFamily, UserMessage
from autogen_ext.models.anthropic import AnthropicChatCompletionClient
from autogen_ext.models.cache import ChatCompletionCache
from autogen_ext.models.openai import (
    AzureOpenAIChatCompletionClient,
    OpenAIChatCompletionClient,
)
from autogen_ext.models.replay import ReplayChatCompletionClient

Call = Callable[..., Any]
ASKED = [UserMessage(content="@say Hello.", source="user")]
INFO: Any = {
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "family": ModelFamily.UNKNOWN,
    "structured_output": True,
}


def openai(url: str) -> Any:
    return OpenAIChatCompletionClient(model="gpt-4o", base_url=f"{url}/v1", api_key="none")


def azure(url: str) -> Any:
    return AzureOpenAIChatCompletionClient(
        model="gpt-4o",
        azure_endpoint=url,
        azure_deployment="desk",
        api_version="2024-10-21",
        api_key="none",
    )


def anthropic(url: str) -> Any:
    return AnthropicChatCompletionClient(
        model="claude-sonnet-4", base_url=url, api_key="none", model_info=INFO
    )


class Own(OpenAIChatCompletionClient):
    """A class of the user's, which asks the class that it derives from."""

    async def create(self, *args: Any, **options: Any) -> CreateResult:
        return await super().create(*args, **options)


def own(url: str) -> Any:
    return Own(model="gpt-4o", base_url=f"{url}/v1", api_key="none")


def cached(url: str) -> Any:
    return ChatCompletionCache(openai(url))


async def answer(client: Any, *, streamed: bool) -> str:
    if not streamed:
        return str((await client.create(ASKED)).content)
    pieces = [piece async for piece in client.create_stream(ASKED)]
    assert len(pieces) > 2
    return str(pieces[-1].content)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("make", "model"),
    [
        (openai, "gpt-4o"),
        (azure, "gpt-4o"),
        (anthropic, "claude-sonnet-4"),
        (own, "gpt-4o"),
        (cached, "gpt-4o"),
    ],
)
def test_a_model_call_has_one_step(
    make: Call, model: str, streamed: bool, url: str, twice: Call, paths: Call
) -> None:
    """It is named after the model. A cache around a client has no step of its own."""
    recorded, again = twice(lambda: asyncio.run(answer(make(url), streamed=streamed)))
    assert recorded == again
    assert paths() == [f"model:{model}"]


def test_a_client_that_asks_nothing_is_replayed_as_it_is(twice: Call, paths: Call) -> None:
    """AutoGen's own stand-in for a model gives its answers again."""

    async def run() -> str:
        client = ReplayChatCompletionClient(["Hello."])
        return str((await client.create(ASKED)).content)

    assert twice(lambda: asyncio.run(run())) == ("Hello.", "Hello.")
    assert paths() == []


def test_a_loaded_client_is_recorded(url: str, twice: Call, paths: Call) -> None:
    """`dump_component` keeps no HTTP client: the loaded one has its own."""
    dumped = openai(url).dump_component()
    dumped.config["api_key"] = "none"

    async def run() -> str:
        return await answer(ChatCompletionClient.load_component(dumped), streamed=False)

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert paths() == ["model:gpt-4o"]


def test_a_cancelled_call_is_cancelled_in_a_replay(url: str, twice: Call) -> None:
    """A team that is stopped cancels what it asks."""

    async def run() -> str:
        client = openai(url)
        asked = [UserMessage(content="@slow 30\n@say Hello.", source="user")]
        task = asyncio.create_task(client.create(asked))
        done, _ = await asyncio.wait([task], timeout=0.2)
        assert not done
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return await answer(client, streamed=False)
        return "not cancelled"

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
