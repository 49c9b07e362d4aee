"""Replay what depends on the client: the host of OpenAI, Azure, aiohttp, and hash seeds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner
from openai import AsyncAzureOpenAI, AsyncOpenAI

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer


@pytest.mark.parametrize(
    "options", [{}, {"entropy": False, "match": ["ignore:/prompt_cache_key"]}], ids=["", "real"]
)
def test_the_key_of_the_prompt_cache_replays(
    server: ProviderServer, tape: Path, options: dict[str, Any]
) -> None:
    """On OpenAI's own host each run sends a random one: recorded, or real and not compared."""
    pytest.importorskip("trustme")
    recorded_with = {key: value for key, value in options.items() if key != "match"}

    async def run() -> str:
        client = AsyncOpenAI(api_key="none", max_retries=0)
        agent = Agent(name="Helper", model=OpenAIResponsesModel("gpt-5-mini", client))
        return str((await Runner.run(agent, "hello")).final_output)

    with server.real_hosts(), tracefork.record(tape, **recorded_with):
        recorded = asyncio.run(run())
    assert server.requests[-1].json()["prompt_cache_key"].startswith("agents-sdk:run:")
    with tracefork.replay(tape, strict=True, **options):
        assert asyncio.run(run()) == recorded


def test_includes_are_sent_in_one_order(
    agent: Callable[..., Any], ask: Callable[..., Any], server: ProviderServer, tape: Path
) -> None:
    """The SDK keeps them in a set, whose order depends on PYTHONHASHSEED."""
    wanted = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    settings = ModelSettings(response_include=wanted)
    with tracefork.record(tape):
        ask(agent("Helper", model_settings=settings), "hello")
    sent = server.requests[-1].json()["include"]
    assert sent == sorted(sent)
    assert len(sent) == 2


def test_azure_replays(server: ProviderServer, tape: Path) -> None:
    """Its URL has the deployment and the version of the API."""

    async def run() -> str:
        client = AsyncAzureOpenAI(
            azure_endpoint=server_url, api_key="none", api_version="2025-04-01-preview"
        )
        agent = Agent(name="Helper", model=OpenAIResponsesModel("gpt-5-mini", client))
        return str((await Runner.run(agent, "hello")).final_output)

    server_url = server.url
    with tracefork.record(tape):
        recorded = asyncio.run(run())
    assert "api-version=" in server.requests[-1].path
    server.stop()
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(run()) == recorded


def test_a_client_of_aiohttp_replays(url: str, server: ProviderServer, tape: Path) -> None:
    """The SDK of OpenAI offers it as another transport."""
    pytest.importorskip("aiohttp")
    from openai import DefaultAioHttpClient

    async def run() -> str:
        async with DefaultAioHttpClient() as http:
            client = AsyncOpenAI(base_url=url, api_key="none", http_client=http)
            agent = Agent(name="Helper", model=OpenAIResponsesModel("gpt-5-mini", client))
            return str((await Runner.run(agent, "hello")).final_output)

    with tracefork.record(tape):
        recorded = asyncio.run(run())
    server.stop()
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(run()) == recorded
