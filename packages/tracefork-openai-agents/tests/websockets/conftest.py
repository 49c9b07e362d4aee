"""Serve the websocket transport of Responses on loopback, with the answers of the testkit."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.models.openai_provider import OpenAIProvider
from openai import AsyncOpenAI
from websockets.sync.server import ServerConnection, serve

from tracefork_testkit import ProviderServer


class WebSocketServer:
    """Forwards each request to a provider, and sends the events of its answer as frames.

    Attributes:
        url: the base URL for a client of OpenAI.
        frames: the requests.
        handshakes: the paths of the handshakes.
        closes_after: closes the connection after so many events, once.
    """

    def __init__(self, provider: ProviderServer) -> None:
        self.frames: list[dict[str, Any]] = []
        self.handshakes: list[str] = []
        self.closes_after: int | None = None
        self._provider = provider.url
        self._server = serve(self._serve, "127.0.0.1", 0)
        port = self._server.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close the port and the connections; a second call does nothing."""
        self._server.shutdown()
        self._thread.join()

    def _serve(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.handshakes.append(connection.request.path)
        for message in connection:
            frame = json.loads(message)
            self.frames.append(frame)
            for number, event in enumerate(self._events(frame)):
                if number == self.closes_after:
                    self.closes_after = None
                    return
                connection.send(event)

    def _events(self, frame: dict[str, Any]) -> Iterator[str]:
        assert frame.pop("type") == "response.create"
        body = json.dumps(frame).encode()
        headers = {"content-type": "application/json"}
        asked = urllib.request.Request(f"{self._provider}/v1/responses", body, headers)
        try:
            with urllib.request.urlopen(asked) as answer:
                for line in answer:
                    if line.startswith(b"data: "):
                        yield line[6:].decode().strip()
        except urllib.error.HTTPError as error:
            with error:
                said = json.load(error)
            yield json.dumps({"type": "error", "status": error.code, **said})


API_KEY = "sk-proj-Websocket1234567890abcdefghij"


@pytest.fixture
def sockets(server: ProviderServer) -> Iterator[WebSocketServer]:
    """A server of websockets."""
    served = WebSocketServer(server)
    yield served
    served.stop()


@pytest.fixture
def calls() -> list[int]:
    """One item for each call of the agent's tool."""
    return []


@pytest.fixture
def ask(sockets: WebSocketServer, calls: list[int]) -> Callable[..., Any]:
    """Run an agent that asks over a websocket, with a provider of its own."""

    def lookup() -> str:
        calls.append(1)
        return f"ticket {len(calls)}"

    def echo(text: str) -> str:
        return text

    def run(question: str, *, streamed: bool = False, stop_after: int | None = None) -> str:
        tools = [function_tool(lookup), function_tool(echo)]
        agent: Any = Agent(name="Helper", model="gpt-5-mini", tools=tools)
        client = AsyncOpenAI(base_url=sockets.url, api_key=API_KEY, max_retries=0)
        provider = OpenAIProvider(openai_client=client, use_responses_websocket=True)
        return asyncio.run(
            _run(agent, question, provider, streamed or bool(stop_after), stop_after)
        )

    return run


async def _run(
    agent: Any, question: str, provider: OpenAIProvider, streamed: bool, stop_after: int | None
) -> str:
    config = RunConfig(model_provider=provider)
    try:
        if not streamed:
            return str((await Runner.run(agent, question, run_config=config)).final_output)
        result = Runner.run_streamed(agent, question, run_config=config)
        kinds: list[str] = []
        async for event in result.stream_events():
            kinds.append(event.type)
            if len(kinds) == stop_after:
                result.cancel()
        return f"{result.final_output} {kinds}"
    finally:
        await provider.aclose()
