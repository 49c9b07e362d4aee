"""Every operation of Bedrock replays as it was recorded, through boto3's own parser."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

import tracefork_core as tracefork
from tracefork_testkit import Fault, ProviderServer, closed_network
from tracefork_testkit.bedrock import BedrockConverse
from tracefork_testkit.http1 import Delivery

from .conftest import HELLO, ByteServer, both, chunks, client_at, exchanges

CLAUDE = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "@say three words here"}],
}
TOOLS: Any = {
    "tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]
}


def converse(client: Any) -> Any:
    return client.converse(modelId="a.claude-v1:0", messages=HELLO, toolConfig=TOOLS)


def converse_stream(client: Any) -> Any:
    asked = [{"role": "user", "content": [{"text": '@call look {"q": "tapes ü"}'}]}]
    answer = client.converse_stream(modelId="a.claude-v1:0", messages=asked, toolConfig=TOOLS)
    return list(answer["stream"]), answer["ResponseMetadata"]


def invoke(client: Any) -> Any:
    answer = client.invoke_model(modelId="a.claude-v1:0", body=json.dumps(CLAUDE))
    return json.loads(answer["body"].read()), answer["contentType"]


def invoke_stream(client: Any) -> Any:
    answer = client.invoke_model_with_response_stream(
        modelId="a.claude-v1:0", body=json.dumps(CLAUDE)
    )
    return [json.loads(event["chunk"]["bytes"]) for event in answer["body"]]


OPERATIONS = [converse, converse_stream, invoke, invoke_stream]


@pytest.mark.parametrize("ask", OPERATIONS)
def test_an_operation_replays_without_a_network(
    ask: Any, server: ProviderServer, client: Any, tape: Path
) -> None:
    """The answer is new each time, so an equal one is from the tape."""
    with tracefork.record(tape) as recording:
        recorded = ask(client)
    assert recording.receipt is not None
    assert recording.receipt.strays == []
    assert ask(client) != recorded
    with closed_network() as network, tracefork.replay(tape):
        assert ask(client) == recorded
    assert not network.attempts


def test_agents_and_runtimes_are_recorded_too(server: ProviderServer, tape: Path) -> None:
    """They are other services of AWS, with operations of their own."""
    agent = client_at(server, "bedrock-agent-runtime")

    def run() -> Any:
        answer = agent.invoke_agent(
            agentId="A", agentAliasId="B", sessionId="one", inputText="@say let us see"
        )
        return b"".join(event["chunk"]["bytes"] for event in answer["completion"])

    recorded, replayed = both(tape, run)
    assert recorded.startswith(b"let us see")
    assert replayed == recorded


def test_agentcore_is_recorded_where_boto3_knows_it(server: ProviderServer, tape: Path) -> None:
    """Its answer is a body to read, of any type."""
    import boto3

    if "bedrock-agentcore" not in boto3.Session().get_available_services():
        assert boto3.__version__ < "1.39"
        return
    runtime = client_at(server, "bedrock-agentcore", endpoint_url=f"{server.url}/echo")

    def run() -> bytes:
        answer = runtime.invoke_agent_runtime(
            agentRuntimeArn="arn:aws:bedrock-agentcore:us-east-1:1:runtime/r", payload=b"{}"
        )
        return bytes(answer["response"].read())

    assert both(tape, run) == (b"{}", b"{}")
    assert len(exchanges(tape)) == 1


def test_frames_keep_their_bytes_and_the_chunks_that_they_came_in(tape: Path) -> None:
    """The chunks end in the middle of frames, as on a real network."""
    frames = b"".join(stream_frames())
    sent = [frames[i : i + 41] for i in range(0, len(frames), 41)]
    kind = ("content-type", "application/vnd.amazon.eventstream")
    with ByteServer(Delivery(200, [kind], sent, chunked=True)) as server:
        client = client_at(server)
        recorded, replayed = both(tape, lambda: converse_stream(client))
    assert replayed == recorded
    assert chunks(tape) == [sent]


def stream_frames() -> list[bytes]:
    """Return the frames of a short answer."""
    from tracefork_testkit import Reply, Usage
    from tracefork_testkit.stamp import Stamp

    dialect = BedrockConverse()
    asked = dialect.read("/model/m/converse-stream", {"messages": HELLO})
    reply = Reply("A text of several words, ünd so on.", thinking="Let me see.")
    return list(dialect.events(asked, reply, Usage(5, 6), Stamp.of(b"frames", 1)))


def test_modeled_errors_come_back_as_their_own_classes(tape: Path) -> None:
    """The class, the code and the metadata are what a program branches on."""
    with ProviderServer([Fault(400, message="bad model")]) as server:
        client = client_at(server)

        def run() -> Any:
            with pytest.raises(client.exceptions.ValidationException) as raised:
                converse(client)
            return raised.value.response

        recorded, replayed = both(tape, run)
    assert recorded["Error"] == {"Code": "ValidationException", "Message": "bad model"}
    assert replayed == recorded


def test_an_error_within_a_stream_comes_after_the_same_events(tape: Path) -> None:
    """Bedrock ends a stream with a frame that is an exception."""
    with ProviderServer([Fault(kind="stream_error", after_chunks=2)]) as server:
        client = client_at(server)

        def run() -> Any:
            events = []
            stream = client.converse_stream(modelId="m", messages=HELLO)["stream"]
            with closing(stream), pytest.raises(EventStreamError) as raised:
                events.extend(stream)
            return events, raised.value.response, str(raised.value)

        recorded, replayed = both(tape, run)
    assert "modelStreamErrorException" in recorded[2]
    assert replayed == recorded


@pytest.mark.parametrize("kind", ["reset", "truncate"])
def test_a_stream_that_breaks_off_breaks_off_at_the_same_event(kind: Any, tape: Path) -> None:
    """The exception is urllib3's own, and so is its text."""
    with ProviderServer([Fault(kind=kind, after_chunks=3)], cut_anywhere=True) as server:
        client = client_at(server)

        def run() -> Any:
            events = []
            stream = client.converse_stream(modelId="m", messages=HELLO)["stream"]
            with (
                closing(stream),
                pytest.raises(Exception, match=r"broken|ended prematurely") as raised,
            ):
                events.extend(iter(stream))
            return events, type(raised.value), str(raised.value)

        recorded, replayed = both(tape, run)
    assert recorded[0]
    assert replayed == recorded


def test_a_flipped_byte_is_a_checksum_mismatch_of_botocores(tape: Path) -> None:
    """Nothing between the wire and its parser repairs or hides it."""
    frames = stream_frames()
    flipped = frames[1][:-9] + bytes([frames[1][-9] ^ 1]) + frames[1][-8:]
    kind = ("content-type", "application/vnd.amazon.eventstream")
    sent = Delivery(200, [kind], [frames[0], flipped, *frames[2:]], chunked=True)
    with ByteServer(sent) as server:
        client = client_at(server)

        def run() -> Any:
            stream = client.converse_stream(modelId="m", messages=HELLO)["stream"]
            with closing(stream), pytest.raises(Exception, match="Checksum mismatch") as raised:
                list(stream)
            return type(raised.value).__name__, str(raised.value)

        recorded, replayed = both(tape, run)
    assert recorded[0] == "ChecksumMismatch"
    assert replayed == recorded


def test_a_swallowed_client_error_is_still_the_recorded_one(tape: Path) -> None:
    """A program that handles throttling itself takes the same path again."""
    with ProviderServer([Fault(429)]) as server:
        client = client_at(server)

        def run() -> str:
            try:
                converse(client)
            except ClientError as error:
                return str(error.response["Error"]["Code"])
            return "answered"

        assert both(tape, run) == ("ThrottlingException", "ThrottlingException")
