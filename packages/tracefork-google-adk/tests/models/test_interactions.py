"""Gemini by its Interactions API, which keeps the conversation at the provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

from tracefork_testkit import ProviderServer
from tracefork_testkit.http1 import Delivery, ReceivedRequest


class Interactions(ProviderServer):
    """Answers each request with an interaction that has an id of its own."""

    _numbers = count(1)

    def answer(self, received: ReceivedRequest) -> Delivery:
        self._received.append(received)
        number = next(self._numbers)
        content = [{"type": "text", "text": f"Answer {number}."}]
        document = {
            "id": f"interaction-{number}",
            "model": "gemini-2.5-flash",
            "object": "interaction",
            "status": "completed",
            "created": "2026-01-01T00:00:00Z",
            "updated": "2026-01-01T00:00:00Z",
            "steps": [{"type": "model_output", "content": content}],
        }
        kind = ("content-type", "application/json")
        return Delivery(200, [kind], [json.dumps(document).encode()])


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that speaks this API only."""
    with Interactions() as server:
        yield server


def answers(url: str) -> list[str]:
    """Ask an agent two questions."""

    async def run() -> list[str]:
        model = Gemini(model="gemini-2.5-flash", base_url=url, use_interactions_api=True)
        runner = InMemoryRunner(LlmAgent(name="helper", model=model), app_name="desk")
        session = await runner.session_service.create_session(app_name="desk", user_id="ann")
        said: list[str] = []
        for question in ("Hello.", "And now?"):
            asked = types.Content(role="user", parts=[types.Part(text=question)])
            given = {"user_id": "ann", "session_id": session.id, "new_message": asked}
            said += [event.model_dump_json() async for event in runner.run_async(**given)]
        await model.api_client.aio.aclose()
        return said

    return asyncio.run(run())


def test_a_conversation_that_the_provider_keeps_replays(
    server: ProviderServer, twice: Callable[..., tuple[Any, Any]]
) -> None:
    """The second question names the first interaction, and a replay gives the recorded ids."""
    url = server.url
    recorded, again = twice(lambda: answers(url), keys=("GOOGLE_API_KEY",))
    assert again == recorded
    assert "interaction-" in str(server.requests[-1].json()["previous_interaction_id"])
