"""Replay and fork runs whose conversation is kept by the provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from agents import OpenAIConversationsSession, Runner
from openai import AsyncOpenAI

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer


class _Conversations(ThreadingHTTPServer):
    """Keeps conversations and their items, as the provider's API does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.items: list[Any] = []
        self.asked = 0


class _Handler(BaseHTTPRequestHandler):
    server: _Conversations

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/items"):
            self.answer({"id": "conv_1", "object": "conversation", "created_at": 1})
            return
        for item in body["items"]:
            number = len(self.server.items)
            if isinstance(item["content"], str):
                item["content"] = [{"type": "input_text", "text": item["content"]}]
            self.server.items.append({"type": "message", "id": f"msg_{number}", **item})
        self.page()

    def do_GET(self) -> None:
        self.page()

    def page(self) -> None:
        self.answer({"object": "list", "data": self.server.items, "has_more": False})

    def answer(self, document: Any) -> None:
        self.server.asked += 1
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def conversations() -> Iterator[_Conversations]:
    """The provider's server of conversations."""
    with _Conversations() as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield server
        server.shutdown()
        serving.join()


@pytest.fixture
def run(
    agent: Callable[..., Any], conversations: _Conversations
) -> Callable[[], tuple[str, list[Any]]]:
    """Ask an agent two questions in one conversation; return its last answer and the items."""
    url = f"http://127.0.0.1:{conversations.server_port}/v1"

    async def ask() -> tuple[str, list[Any]]:
        async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            held = OpenAIConversationsSession(openai_client=client)
            helper = agent("Helper")
            await Runner.run(helper, "one", session=held)
            result = await Runner.run(helper, "two", session=held)
            return str(result.final_output), await held.get_items()

    return lambda: asyncio.run(ask())


def test_a_conversation_that_the_provider_keeps_replays_without_it(
    run: Callable[[], tuple[str, list[Any]]],
    conversations: _Conversations,
    server: ProviderServer,
    tape: Path,
) -> None:
    """Its items are read and written over HTTP, and those requests are exchanges."""
    with tracefork.record(tape):
        recorded = run()
    asked = conversations.asked
    server.stop()
    with tracefork.replay(tape, strict=True) as replayed:
        assert run() == recorded
    assert replayed.digest == replayed.tape.digest
    assert (conversations.asked, len(recorded[1])) == (asked, 4)


def test_a_fork_does_not_write_to_the_conversation_at_the_provider(
    run: Callable[[], tuple[str, list[Any]]], conversations: _Conversations, tape: Path
) -> None:
    """What the fork says differs from the recording, so saving it would be a new write."""
    with tracefork.record(tape):
        run()
    before = list(conversations.items)
    with tracefork.Tape.open(tape) as opened:
        model = [one.url.endswith("/responses") for one in opened.exchanges].index(True)
    with (
        pytest.raises(tracefork.TraceforkError, match=r"/conversations/conv_1/items"),
        tracefork.fork(tape, at=model, replace="The fork said so."),
    ):
        run()
    assert conversations.items == before
