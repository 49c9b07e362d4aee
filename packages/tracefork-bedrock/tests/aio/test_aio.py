"""aiobotocore is recorded once, above aiohttp, and replays as boto3 does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiobotocore.config import AioConfig
from aiobotocore.httpxsession import HttpxSession
from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError

import tracefork_bedrock
import tracefork_core as tracefork
from tracefork_testkit import Fault, Hold, ProviderServer, Reply, closed_network

HELLO: Any = [{"role": "user", "content": [{"text": "@think slowly\n@say Grüße from a tape"}]}]
CLAUDE = json.dumps(
    {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "@say three words here"}],
    }
)
KEYS = {
    "aws_access_key_id": "AKIAEXAMPLEOFTRACE4",
    "aws_secret_access_key": "secret-of-the-example/0123456789abcdef",
}
SESSION = get_session()
"""One for all tests: it loads the models of the services once."""
Ask = Callable[[Any], Awaitable[Any]]


async def asked(server: ProviderServer, ask: Ask, **options: Any) -> Any:
    """Return what a new client answers."""
    retries = {"mode": "standard", "total_max_attempts": options.pop("attempts", 1)}
    config = AioConfig(
        retries={**retries, **options.pop("retries", {})}, **options.pop("config", {})
    )
    given = {"region_name": "us-east-1", "endpoint_url": server.url, **KEYS, **options}
    async with SESSION.create_client("bedrock-runtime", config=config, **given) as client:
        return await ask(client)


async def converse(client: Any) -> Any:
    return await client.converse(modelId="m:0", messages=HELLO)


async def converse_stream(client: Any) -> Any:
    answer = await client.converse_stream(modelId="m:0", messages=HELLO)
    return [event async for event in answer["stream"]]


async def invoke(client: Any) -> Any:
    answer = await client.invoke_model(modelId="m:0", body=CLAUDE)
    body = answer["body"]
    return [await body.read(10), await body.read()]


async def invoke_lines(client: Any) -> Any:
    answer = await client.invoke_model(modelId="m:0", body=CLAUDE)
    return [chunk async for chunk in answer["body"].iter_chunks(50)]


async def invoke_stream(client: Any) -> Any:
    answer = await client.invoke_model_with_response_stream(modelId="m:0", body=CLAUDE)
    return [event["chunk"]["bytes"] async for event in answer["body"]]


@pytest.mark.parametrize("ask", [converse, converse_stream, invoke, invoke_lines, invoke_stream])
def test_an_operation_is_one_exchange_and_replays_without_keys(
    ask: Ask, server: ProviderServer, tape: Path
) -> None:
    """aiohttp below it has a seam of its own, which must not record it once more."""
    with tracefork.record(tape) as recording:
        recorded = asyncio.run(asked(server, ask))
    with tracefork.Tape.open(tape) as opened:
        assert [exchange.aside.seam for exchange in opened.exchanges] == ["botocore"]
    assert recording.receipt is not None
    assert recording.receipt.strays == []
    none: Any = dict.fromkeys(KEYS)
    with closed_network() as network, tracefork.replay(tape):
        assert asyncio.run(asked(server, ask, **none)) == recorded
    assert not network.attempts


def test_a_tape_of_boto3_answers_aiobotocore(
    server: ProviderServer, client: Any, tape: Path
) -> None:
    """Both send the same request, so the tape cannot tell who asked."""
    with tracefork.record(tape):
        recorded = client.converse(modelId="m:0", messages=HELLO)
    with tracefork.replay(tape):
        assert asyncio.run(asked(server, converse))["output"] == recorded["output"]


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
def test_a_call_is_retried_as_often_and_without_waiting(mode: str, tape: Path) -> None:
    """The limiter and the backoff of a replay wait for nothing."""
    with ProviderServer([Fault(429), Reply("at last")]) as server:
        retries = {"retries": {"mode": mode}, "attempts": 3}
        took: list[float] = []

        async def ask(client: Any) -> Any:
            began = time.perf_counter()
            answer = await converse(client)
            took.append(time.perf_counter() - began)
            return answer

        with tracefork.record(tape):
            recorded = asyncio.run(asked(server, ask, **retries))
        with tracefork.replay(tape):
            assert asyncio.run(asked(server, ask, **retries)) == recorded
    assert recorded["ResponseMetadata"]["RetryAttempts"] == 1
    assert took[1] < 0.2


@pytest.mark.parametrize(
    "fault",
    [
        Fault(400, message="bad model"),
        Fault(kind="stream_error", after_chunks=2),
        Fault(kind="reset", after_chunks=2),
        Fault(kind="truncate", after_chunks=3),
        Fault(kind="reset"),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.after_chunks}",
)
def test_failures_come_back_after_the_same_events(fault: Fault, tape: Path) -> None:
    """The class and the text are those that aiohttp and botocore raised."""

    async def ask(client: Any) -> Any:
        events: list[Any] = []
        try:
            answer = await client.converse_stream(modelId="m", messages=HELLO)
            try:
                async for event in answer["stream"]:
                    events.append(event)  # noqa: PERF401 - those before the error count
            finally:
                answer["stream"].close()
        except (BotoCoreError, ClientError, aiohttp.ClientError) as error:
            return events, type(error).__name__, str(error)
        return events

    with ProviderServer([fault], cut_anywhere=True) as server:
        with tracefork.record(tape):
            recorded = asyncio.run(asked(server, ask))
        with tracefork.replay(tape):
            assert asyncio.run(asked(server, ask)) == recorded
    assert len(recorded) == 3


def test_a_stream_can_be_left_and_not_read_further_then(tape: Path) -> None:
    """Reading past the recorded part is a divergence."""

    async def ask(client: Any, count: int = 2) -> Any:
        answer = await client.converse_stream(modelId="m", messages=HELLO)
        events = []
        async for event in answer["stream"]:
            events.append(event)
            if len(events) == count:
                break
        answer["stream"].close()
        return events

    with ProviderServer(chunk_delay=0.02) as server:
        with tracefork.record(tape):
            recorded = asyncio.run(asked(server, ask))
        with tracefork.replay(tape):
            assert asyncio.run(asked(server, ask)) == recorded
        with pytest.raises(tracefork.DivergenceError, match="further"), tracefork.replay(tape):
            asyncio.run(asked(server, lambda client: ask(client, 4)))


def test_a_read_that_is_given_up_is_given_up_again(tape: Path) -> None:
    """A timeout around one event leaves the stream as it is."""

    async def ask(client: Any) -> Any:
        answer = await client.converse_stream(modelId="m", messages=HELLO)
        events: list[Any] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                async for event in answer["stream"]:
                    events.append(event)  # noqa: PERF401 - those before the timeout count
        answer["stream"].close()
        return events

    hold = Hold(after_chunks=2)
    with ProviderServer([Reply("one two three", hold=hold)]) as server:
        with tracefork.record(tape):
            recorded = asyncio.run(asked(server, ask))
        hold.release()
        with tracefork.replay(tape):
            assert asyncio.run(asked(server, ask)) == recorded
    assert len(recorded) == 2


def test_calls_at_the_same_time_end_in_the_recorded_order(tape: Path) -> None:
    """The slow one comes second, although it was asked first."""

    async def ask(client: Any) -> Any:
        done: list[str] = []

        async def one(text: str) -> None:
            messages: Any = [{"role": "user", "content": [{"text": text}]}]
            await client.converse(modelId="m", messages=messages)
            done.append(text)

        await asyncio.gather(one("@slow 0.2"), one("@say at once"))
        return done

    with ProviderServer() as server:
        with tracefork.record(tape):
            recorded = asyncio.run(asked(server, ask))
        with tracefork.replay(tape):
            assert asyncio.run(asked(server, ask)) == recorded
    assert recorded == ["@say at once", "@slow 0.2"]


def test_an_attached_client_is_recorded_without_patches(server: ProviderServer, tape: Path) -> None:
    """`ambient=False` records the attached client, and no other."""

    async def ask(client: Any) -> Any:
        return await converse(tracefork_bedrock.attach(client))

    with tracefork.record(tape, ambient=False):
        asyncio.run(asked(server, converse))
        recorded = asyncio.run(asked(server, ask))
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.exchanges) == 1
    with tracefork.replay(tape, ambient=False):
        assert asyncio.run(asked(server, ask)) == recorded


def test_the_backend_of_httpx_is_refused_in_one_sentence(
    server: ProviderServer, tape: Path
) -> None:
    """It reads no event streams, with or without a session."""
    config = {"http_session_cls": HttpxSession}
    with pytest.raises(tracefork.UsageError, match="Leave out http_session_cls"):
        with tracefork.record(tape):
            asyncio.run(asked(server, converse, config=config))
    assert not server.requests


def test_a_client_of_aioboto3_replays(server: ProviderServer, tape: Path) -> None:
    """Its session makes clients of aiobotocore, each of whose requests is one exchange."""
    aioboto3 = pytest.importorskip("aioboto3", reason="it supports older versions of aiobotocore")

    url = server.url

    async def ask() -> Any:
        session = aioboto3.Session(region_name="us-east-1", **KEYS)
        async with session.client("bedrock-runtime", endpoint_url=url) as client:
            answer, events = await converse(client), await converse_stream(client)
        return answer["output"], events

    with tracefork.record(tape):
        recorded = asyncio.run(ask())
    with closed_network(), tracefork.replay(tape, strict=True):
        assert asyncio.run(ask()) == recorded
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.exchanges) == 2
