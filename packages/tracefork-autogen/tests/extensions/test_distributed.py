"""A distributed runtime: its model calls are on the tape, its messages are not."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    message_handler,
    try_get_known_serializers_for_type,
)
from autogen_core.models import UserMessage
from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntime, GrpcWorkerAgentRuntimeHost

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]


@dataclass
class Question:
    text: str


@dataclass
class Answer:
    text: str


class Helper(RoutedAgent):
    """Asks a model."""

    def __init__(self, client: Any) -> None:
        super().__init__("Helps.")
        self._client = client

    @message_handler
    async def on_question(self, message: Question, ctx: MessageContext) -> Answer:
        asked = [UserMessage(content=message.text, source="user")]
        return Answer(str((await self._client.create(asked)).content))


async def ask(client: Call, address: str) -> str:
    """Ask an agent of this process over the host of another program."""
    runtime = GrpcWorkerAgentRuntime(address)
    await runtime.start()
    try:
        for kind in (Question, Answer):
            runtime.add_message_serializer(try_get_known_serializers_for_type(kind))
        await Helper.register(runtime, "helper", lambda: Helper(client()))
        answer = await runtime.send_message(Question("@say Hi."), AgentId("helper", "default"))
        return str(answer.text)
    finally:
        await runtime.stop()


@pytest.fixture
def host() -> Iterator[str]:
    """The address of a host that is no part of the run."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> GrpcWorkerAgentRuntimeHost:
        host = GrpcWorkerAgentRuntimeHost(address)
        host.start()
        return host

    serving = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield address
    finally:
        asyncio.run_coroutine_threadsafe(serving.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_replay_sends_messages_to_the_host_again(
    client: Call, server: ProviderServer, tape: Path, host: str, paths: Call
) -> None:
    """They travel over gRPC, which is named and not captured. No model is asked again."""
    with tracefork.record(tape) as recorded:
        said = asyncio.run(ask(client, host))
    server.stop()
    with tracefork.replay(tape, strict=True):
        assert asyncio.run(ask(client, host)) == said
    receipt = recorded.receipt
    assert receipt is not None
    assert receipt.strays == [f"{host} (grpc)"]
    assert paths() == ["agent:helper ▸ model:gpt-4o"]
    with tracefork.Tape.open(tape) as opened:
        assert {step.kind for step in opened.steps} == {"agent", "model"}
