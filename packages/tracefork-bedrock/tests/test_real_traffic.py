"""Recorded traffic of the real Bedrock: replayed byte for byte, and read without loss."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pytest
from botocore.eventstream import EventStreamBuffer
from botocore.exceptions import ClientError

import tracefork_core as tracefork
from tracefork_core.adapters.formats import (
    ModelCall,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolUse,
)
from tracefork_core.providers import model_call, tool_use
from tracefork_testkit import closed_network
from tracefork_testkit.http1 import Delivery

from .conftest import ByteServer, client_at

SHARED = Path(__file__).parents[4] / "shared"
FOLDERS = [SHARED / "traffic" / "cassettes", SHARED / "real" / "vcr"]
OF_THE_BYTES = ("content-length", "content-encoding", "transfer-encoding", "connection")

pytestmark = pytest.mark.skipif(
    not all(folder.is_dir() for folder in FOLDERS),
    reason="recorded traffic of real providers is not ours to publish",
)


class Recorded(NamedTuple):
    """One request to Bedrock and its answer, from a cassette."""

    source: str
    service: str
    path: str
    body: bytes
    status: int
    headers: list[tuple[str, str]]
    answer: bytes

    @property
    def operation(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def sent(self) -> list[bytes]:
        """The answer as a network delivers it: a stream is cut in the middle of its frames."""
        if self.is_stream:
            return [self.answer[at : at + 1021] for at in range(0, len(self.answer), 1021)]
        return [self.answer] if self.answer else []

    @property
    def is_stream(self) -> bool:
        return self.answer[:2] == b"\0\0"

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of a stream as botocore reads them, or the whole answer alone."""
        if not self.is_stream:
            return [json.loads(self.answer)]
        buffer = EventStreamBuffer()
        buffer.add_data(self.answer)
        return [_event(message) for message in buffer]


def _event(message: Any) -> dict[str, Any]:
    told = json.loads(message.payload)
    if "bytes" not in told:
        return {message.headers[":event-type"]: told}
    data = base64.b64decode(told["bytes"])
    return json.loads(data) if data.startswith(b"{") else {"text": data.decode()}


@pytest.fixture(scope="module")
def traffic() -> list[Recorded]:
    found = [one for folder in FOLDERS for one in _recorded(folder)]
    assert len(found) > 100
    return found


def _recorded(folder: Path) -> Iterator[Recorded]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in sorted(folder.rglob("*.y*ml")):
        data = path.read_bytes()
        if b"bedrock" not in data:
            continue
        for entry in yaml.load(data, Loader=loader)["interactions"]:
            request, response = entry["request"], entry["response"]
            parts = urlsplit(request["uri"])
            service = (parts.hostname or "").partition(".")[0]
            if not service.startswith("bedrock"):
                continue
            headers = [
                (name, str(value[0] if isinstance(value, list) else value))
                for name, value in response["headers"].items()
                if name.lower() not in OF_THE_BYTES
            ]
            status = response["status"]["code"]
            answer = _bytes(response)
            yield Recorded(path.name, service, parts.path, _bytes(request), status, headers, answer)


def _bytes(message: dict[str, Any]) -> bytes:
    if "parsed_body" in message:
        return json.dumps(message["parsed_body"], ensure_ascii=False).encode()
    body = message.get("body")
    body = body.get("string") if isinstance(body, dict) else body
    return body if isinstance(body, bytes) else str(body or "").encode()


def ask(clients: dict[str, Any], one: Recorded) -> Any:
    """Ask as the program did that the cassette is of, and read all of the answer."""
    client, given = clients[one.service], json.loads(one.body or b"{}")
    _, kind, name, *rest = one.path.split("/")
    name = unquote(name)
    try:
        if one.operation.startswith("invoke"):
            called = client.invoke_model
            if "stream" in one.operation:
                called = client.invoke_model_with_response_stream
            result = called(modelId=name, body=one.body)
        elif kind == "model":
            called = getattr(client, unquote(one.operation).replace("-", "_"))
            result = called(modelId=name, **_unpacked(given))
        elif kind == "agents":
            result = client.invoke_agent(
                agentId=name, agentAliasId=rest[1], sessionId=rest[3], **given
            )
        else:
            result = client.retrieve(knowledgeBaseId=name, **given)
    except ClientError as error:
        return str(error)
    for part in {"stream", "body", "completion"} & result.keys():
        body = result[part]
        result[part] = body.read() if hasattr(body, "read") else list(body)
    return result


def _unpacked(value: Any) -> Any:
    """Return arguments with the bytes that boto3 packs."""
    if isinstance(value, list):
        return [_unpacked(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(inner)
        if key in ("bytes", "body", "redactedContent") and isinstance(inner, str)
        else _unpacked(inner)
        for key, inner in value.items()
    }


def test_real_traffic_replays_byte_for_byte_and_reads_without_loss(
    traffic: list[Recorded], tape: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bodies, their pieces, and what boto3 makes of them; texts, tool calls and token counts."""
    deliveries = [Delivery(one.status, one.headers, one.sent, chunked=True) for one in traffic]
    with ByteServer(*deliveries) as server:
        services = {one.service for one in traffic}
        clients = {service: client_at(server, service) for service in services}
        with tracefork.record(tape):
            live = [ask(clients, one) for one in traffic]
    with closed_network() as network, tracefork.replay(tape) as replayed:
        again = [ask(clients, one) for one in traffic]
    assert not network.attempts
    equal = sum(before == after for before, after in zip(live, again, strict=True))
    with tracefork.Tape.open(tape) as opened:
        recorded = list(opened.exchanges)
        whole = sum(
            b"".join(exchange.chunks) == one.answer
            for exchange, one in zip(recorded, traffic, strict=True)
        )
        lossless = sum(
            is_read_without_loss(one, model_call(exchange), tool_use(exchange))
            for exchange, one in zip(recorded, traffic, strict=True)
        )
        pieces = sum(
            list(exchange.chunks) == one.sent
            for exchange, one in zip(recorded, traffic, strict=True)
            if one.is_stream
        )
    with capsys.disabled():
        print(f"\n{equal} equal, {whole} byte-equal, {lossless} read, of {len(traffic)}")
    assert equal == whole == lossless == replayed.exchanges == len(traffic)
    assert pieces == sum(one.is_stream for one in traffic)


def is_read_without_loss(one: Recorded, call: ModelCall | None, use: ToolUse | None) -> bool:
    """Compare what was read with what the simplest reading finds in the answer."""
    said = "".join(_texts(one.events))
    if use is not None:
        assert use.result is not None
        assert str(use.result).replace("\n", "") == said.replace("\n", ""), one.source
        return True
    assert call is not None
    if one.status >= 400:
        assert call.error is not None
        assert call.error.message == one.events[0]["message"]
        return True
    assert (call.provider, call.error) == ("aws.bedrock", None), one.source
    read = [part for message in call.output for part in message.parts]
    texts = (part.content for part in read if isinstance(part, TextPart | ReasoningPart))
    assert "".join(texts) == said, one.source
    called = [(part.name, part.arguments) for part in read if isinstance(part, ToolCallPart)]
    assert called == _calls(one.events), one.source
    vectors = [part for part in read if part.type == "embedding"]
    assert bool(vectors) == (call.operation == "embeddings")
    assert call.usage is not None, one.source
    assert (call.usage.input_tokens, call.usage.output_tokens) == _counts(one), one.source
    return True


TEXTS = ("text", "outputText", "generation", "completion", "thinking")
ECHOED = ("prompt", "chat_history", "amazon-bedrock-trace", "trace", "input", "toolUse", "texts")
# Of a retrieval: where a text was found.
FOUND_AT = ("location", "metadata")


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in an answer in their order, without what it repeats of the request."""
    if isinstance(value, list):
        for one in value:
            yield from _texts(one)
    if isinstance(value, dict):
        if "toolResult" in value.get("delta", {}):
            return
        for key, inner in value.items():
            if key in TEXTS and isinstance(inner, str):
                yield inner
            elif key not in ECHOED + FOUND_AT:
                yield from _texts(inner)


def _calls(events: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Return the calls of tools in an answer: whole ones, and those that come in pieces."""
    found: list[tuple[str, Any]] = []
    pieces: list[str] = []
    for event in events:
        for use in _uses(event):
            if use.get("type") == "server_tool_use":
                found.append(("", None))
            elif use.get("name"):
                found.append((use["name"], use.get("input")))
            elif found and isinstance(use.get("input"), str):
                pieces.append(use["input"])
                continue
            pieces = []
        if found and pieces:
            found[-1] = (found[-1][0], pieces)
    return [
        (name, json.loads("".join(given)) if isinstance(given, list) else given)
        for name, given in found
        if name
    ]


def _uses(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for one in value:
            yield from _uses(one)
    if isinstance(value, dict):
        if value.get("type") == "tool_use":
            yield value
        if value.get("type") == "input_json_delta":
            yield {"input": value["partial_json"]}
        for key, inner in value.items():
            if key == "toolUse":
                yield inner
            else:
                yield from _uses(inner)


def _counts(one: Recorded) -> tuple[int | None, int | None]:
    """Return the token counts that an answer reports, wherever it does."""
    told = {name.lower(): value for name, value in one.headers}
    text = json.dumps(one.events)
    usage: dict[str, Any] = {}
    for found in _named(one.events, "usage"):
        usage |= {key: value for key, value in found.items() if value is not None}
    metrics = {key: v for found in _named(one.events, METRICS) for key, v in found.items()}
    cached = sum(
        usage.get(first, usage.get(second, 0)) or 0
        for first, second in (
            ("cacheReadInputTokens", "cacheReadInputTokenCount"),
            ("cacheWriteInputTokens", "cacheWriteInputTokenCount"),
            ("cache_read_input_tokens", ""),
            ("cache_creation_input_tokens", ""),
        )
    )
    entered = usage.get("inputTokens", usage.get("input_tokens"))
    left = usage.get("outputTokens", usage.get("output_tokens"))
    if entered is None:
        entered = metrics.get("inputTokenCount", told.get("x-amzn-bedrock-input-token-count"))
        left = metrics.get("outputTokenCount", told.get("x-amzn-bedrock-output-token-count"))
    if entered is None:
        assert one.operation == "count-tokens", text[:200]
        entered = one.events[0]["inputTokens"]
    return int(entered) + cached, None if left is None else int(left)


METRICS = "amazon-bedrock-invocationMetrics"


def _named(value: Any, name: str) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for one in value:
            yield from _named(one, name)
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == name and isinstance(inner, dict):
                yield inner
            else:
                yield from _named(inner, name)
