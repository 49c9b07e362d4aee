"""Realtime sessions talk over a websocket, which is recorded and replays."""

from __future__ import annotations

import asyncio
import json
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
server = pytest.importorskip(
    "tracefork_testkit.websocket", reason="this environment has no websockets"
)

SAID: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "id": "item_1",
}
SAID["content"] = [{"type": "output_text", "text": "Foggy."}]
RESPONSE = {"id": "resp_1", "object": "realtime.response", "status": "completed", "output": [SAID]}
PLACE = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}
ANSWER: list[dict[str, Any]] = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_text.delta", **PLACE, "delta": "Foggy."},
    {"type": "response.output_text.done", **PLACE, "text": "Foggy."},
    {"type": "response.done", "response": RESPONSE},
]


def provider(connection: Any) -> None:
    """Answer as OpenAI's Realtime API does."""
    session = {"type": "realtime", "object": "realtime.session", "id": "sess_1"}
    connection.send(
        json.dumps({"event_id": "event_0", "type": "session.created", "session": session})
    )
    for text in connection:
        asked = json.loads(text)
        answers: dict[str, list[dict[str, Any]]] = {
            "response.create": ANSWER,
            "session.update": [{"type": "session.updated"}],
        }
        for event in answers.get(asked["type"], []):
            whole = {"event_id": "event_1", "session": asked.get("session"), **event}
            connection.send(json.dumps(whole))


def talk(url: str) -> list[str]:
    """Ask in a realtime session, and return what the agent sees."""
    client = AsyncOpenAI(base_url=url.replace("ws", "http") + "/v1", api_key="none")
    provider = OpenAIProvider(openai_client=client)
    model = openai.OpenAIRealtimeModel("gpt-realtime", provider=provider)

    async def session() -> list[str]:
        seen = []
        async with Agent(name="talker").realtime(model=model).session() as session:
            await session.send("The weather?")
            async for event in session:
                seen.append(repr(event))
                if type(event).__name__ == "RealtimeTurnCompleteEvent":
                    break
        return seen

    return asyncio.run(session())


def test_a_realtime_session_replays(tape: Path) -> None:
    """The agent sees the same, without a server."""
    with server.websocket_server(provider) as url, tracefork.record(tape):
        recorded = talk(url)
    assert any("Foggy." in event for event in recorded)
    with tracefork.replay(tape):
        assert talk("ws://127.0.0.1:40000") == recorded
    with tracefork.Tape.open(tape) as held:
        asked = [it.request_body for it in held.exchanges if it.method == "SEND"]
    assert any(b"The weather?" in body for body in asked)
