"""Replay models that are asked through another client than the SDK's default."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, OpenAIResponsesModel, Runner
from openai import AsyncOpenAI, DefaultAioHttpClient


def test_a_client_of_aiohttp_replays(url: str, twice: Callable[..., Any]) -> None:
    """The SDK of OpenAI offers it as another transport."""
    pytest.importorskip("aiohttp", reason="aiohttp is in the environment of the newest version")

    async def run() -> str:
        async with DefaultAioHttpClient() as http:
            client = AsyncOpenAI(base_url=url, api_key="none", http_client=http)
            agent = Agent(name="Helper", model=OpenAIResponsesModel("gpt-5-mini", client))
            return str((await Runner.run(agent, "hello")).final_output)

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again


@pytest.mark.filterwarnings("ignore")  # LiteLLM's own, when it is imported.
def test_a_model_of_litellm_replays(
    url: str, twice: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has transports of its own, which cross the seams of httpx and aiohttp."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # Else it asks GitHub for prices.
    pytest.importorskip("litellm", reason="LiteLLM is in the environment of the newest version")
    from agents.extensions.models.litellm_model import LitellmModel

    async def run() -> str:
        model = LitellmModel("openai/gpt-5-mini", base_url=url, api_key="none")
        return str((await Runner.run(Agent(name="Helper", model=model), "hello")).final_output)

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
