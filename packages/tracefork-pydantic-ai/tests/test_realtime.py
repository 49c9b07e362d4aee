"""Realtime sessions talk over a WebSocket, which no tape holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.providers.openai import OpenAIProvider

import tracefork_core as tracefork

openai = pytest.importorskip(
    "pydantic_ai.realtime.openai", reason="this version has no realtime sessions"
)


def test_a_replay_refuses_a_realtime_session(
    agent: Callable[..., Any], ask: Callable[..., str], url: str, tape: Path
) -> None:
    """Its WebSocket is not opened, and the error names where it leads."""
    with tracefork.record(tape):
        ask(agent("helper", "@say Hello."))
    client = AsyncOpenAI(base_url=url, api_key="none")
    model = openai.OpenAIRealtimeModel(
        "gpt-realtime", provider=OpenAIProvider(openai_client=client)
    )

    async def talk() -> None:
        async with Agent(name="talker").realtime(model=model).session() as session:
            await session.send("Hello?")

    with pytest.raises(tracefork.EgressError, match=r"127\.0\.0\.1"), tracefork.replay(tape):
        asyncio.run(talk())
