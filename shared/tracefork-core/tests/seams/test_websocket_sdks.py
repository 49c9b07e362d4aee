"""The SDKs' own sessions over websockets replay: OpenAI's Responses and Realtime, Gemini Live."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from google import genai
from google.genai import types
from openai import AsyncOpenAI, OpenAI
from websockets.sync.server import ServerConnection

from tracefork_core import Tape, record, replay
from tracefork_core.providers.decode import model_call
from tracefork_testkit.websocket import websocket_server

AUTHORITY = trustme.CA()
SERVING, TRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
AUTHORITY.issue_cert("127.0.0.1").configure_cert(SERVING)
AUTHORITY.configure_trust(TRUSTING)
SAID = {"type": "output_text", "text": "Foggy.", "annotations": []}
ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "content": [SAID]}
RESPONSE = {"id": "resp_1", "object": "response", "status": "completed", "output": [ITEM]}
SETUP = {"setupComplete": {"sessionId": "1"}}
TURN = {"modelTurn": {"role": "model", "parts": [{"text": "Foggy."}]}, "turnComplete": True}


def provider(connection: ServerConnection) -> None:
    """Answer in the format of the API whose path is asked for; Gemini sends its JSON as bytes."""
    assert connection.request is not None
    path = connection.request.path
    if "/realtime" in path:
        connection.send(json.dumps({"type": "session.created", "event_id": "event_0"}))
    for text in connection:
        message = json.loads(text)
        if "setup" in message:
            connection.send(json.dumps(SETUP).encode())
        elif "client_content" in message:
            connection.send(json.dumps({"serverContent": TURN}).encode())
        elif message["type"] == "response.create":
            ending = "response.done" if "/realtime" in path else "response.completed"
            connection.send(json.dumps({"type": ending, "response": RESPONSE}))


def responses(url: str) -> list[str]:
    client = OpenAI(base_url=url.replace("ws", "http") + "/v1", api_key="sk-none")
    with client.responses.connect() as connection:
        connection.response.create(model="gpt-4.1", input="The weather?")
        event: Any = connection.recv()
        return [event.type, event.response.output[0].content[0].text]


def realtime(url: str) -> list[str]:
    client = OpenAI(base_url=url.replace("ws", "http") + "/v1", api_key="sk-none")
    with client.realtime.connect(model="gpt-realtime") as connection:
        connection.response.create()
        return _until_done([connection.recv(), connection.recv()])


def realtime_on_loop(url: str) -> list[str]:
    client = AsyncOpenAI(base_url=url.replace("ws", "http") + "/v1", api_key="sk-none")

    async def talk() -> list[str]:
        async with client.realtime.connect(model="gpt-realtime") as connection:
            await connection.response.create()
            return _until_done([await connection.recv(), await connection.recv()])

    return asyncio.run(talk())


def _until_done(events: list[Any]) -> list[str]:
    return [events[0].type, events[1].type, events[1].response.output[0].content[0].text]


def gemini_live(url: str) -> list[str]:
    options = types.HttpOptions(
        base_url=url.replace("wss", "https"), async_client_args={"ssl": TRUSTING}
    )
    client = genai.Client(api_key="none", http_options=options)

    async def talk() -> list[str]:
        seen = []
        async with client.aio.live.connect(model="gemini-live") as session:
            turn = types.Content(role="user", parts=[types.Part(text="The weather?")])
            await session.send_client_content(turns=turn)
            async for message in session.receive():
                seen.append(message.text or "")  # noqa: PERF401 - as an agent does
        return seen

    return asyncio.run(talk())


# The SDK of OpenAI calls `connect` in a way that the package deprecates.
@pytest.mark.filterwarnings("ignore:connect.. must be used:DeprecationWarning")
@pytest.mark.parametrize(
    ("agent", "api"),
    [
        (responses, "openai.responses"),
        (realtime, "openai.realtime"),
        (realtime_on_loop, "openai.realtime"),
        (gemini_live, "gemini.live"),
    ],
)
def test_a_session_of_an_sdk_replays(tape: Path, agent: Any, api: str) -> None:
    """The SDK sees the same, without a server, and the tape shows its question as a model call."""
    tls = SERVING if agent is gemini_live else None  # Its SDK insists on that.
    with websocket_server(provider, tls=tls) as url, record(tape) as recording:
        recorded = agent(url)
    assert recorded[-1] == "Foggy."
    assert recording.receipt is not None
    assert (recording.receipt.connections, recording.receipt.crossed) == (1, 1)
    with replay(tape):
        assert agent(f"{url.partition(':')[0]}://127.0.0.1:40000") == recorded
    with Tape.open(tape) as recorded_tape:
        calls = [call for it in recorded_tape.exchanges if (call := model_call(it)) is not None]
    assert [call.api for call in calls] == [api]
    assert calls[0].output[0].parts[0].content == "Foggy."  # type: ignore[union-attr]
