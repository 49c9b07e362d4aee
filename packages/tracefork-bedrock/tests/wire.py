"""Requests to Bedrock and their answers as they are on the wire, without a server."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import boto3
from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from tracefork_bedrock.formats import event_stream
from tracefork_bedrock.formats.wire_format import FORMAT
from tracefork_core.adapters.formats import Answer, ModelCall

HOST = "https://bedrock-runtime.us-east-1.amazonaws.com"


class Asked(NamedTuple):
    """A request as core hands it to a format."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def asked(path: str, body: object, host: str = HOST) -> Asked:
    """Return a request with a JSON body."""
    return Asked("POST", f"{host}{path}", (), json.dumps(body).encode())


def of_model(verb: str, body: object, model: str = "m", host: str = HOST) -> Asked:
    """Return a request to a model."""
    return asked(f"/model/{model}/{verb}", body, host)


def answered(document: object, status: int = 200, **headers: object) -> Answer:
    """Return a whole answer."""
    named = tuple((name.replace("_", "-"), str(value)) for name, value in headers.items())
    return Answer(status, named, (json.dumps(document).encode(),))


def streamed(events: Iterable[dict[str, Any]], *more: event_stream.Frame) -> Answer:
    """Return the stream of Converse: an event has one field, its name."""
    frames = [
        event_stream.event(name, json.dumps(told).encode())
        for one in events
        for name, told in one.items()
    ]
    return _stream([*frames, *more])


def chunked(events: Iterable[dict[str, Any]], *more: event_stream.Frame) -> Answer:
    """Return the stream of InvokeModelWithResponseStream."""
    packed = (base64.b64encode(json.dumps(one).encode()).decode() for one in events)
    frames = [event_stream.event("chunk", json.dumps({"bytes": one}).encode()) for one in packed]
    return _stream([*frames, *more])


def _stream(frames: list[event_stream.Frame]) -> Answer:
    kind = ("content-type", event_stream.MEDIA_TYPE)
    return Answer(200, (kind,), tuple(map(event_stream.encode, frames)))


def read(request: Asked, answer: Answer | None = None) -> ModelCall:
    """Return an exchange as a model call."""
    call = FORMAT.decode(request, answer)
    assert isinstance(call, ModelCall)
    return call


class _Raw:
    """What botocore reads a body from."""

    def __init__(self, chunks: tuple[bytes, ...]) -> None:
        self._rest = b"".join(chunks)
        self._chunks = chunks

    def stream(self, **_: object) -> Iterable[bytes]:
        yield from self._chunks

    def read(self, amount: int | None = None) -> bytes:
        taken = self._rest[:amount] if amount is not None else self._rest
        self._rest = self._rest[len(taken) :]
        return taken

    def close(self) -> None: ...


@cache
def _client(service: str) -> Any:
    """Return a client that signs nothing. To make one takes longer than a test."""
    config = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    return boto3.client(service, region_name="us-east-1", config=config)


def by_boto3(
    operation: str,
    arguments: dict[str, Any],
    make: Callable[[Asked], Answer],
    service: str = "bedrock-runtime",
) -> tuple[Asked, Any]:
    """Return the request that boto3 sends, and what it makes of the answer to it."""
    client = _client(service)
    seen: list[Asked] = []

    def answer(request: Any, **_: object) -> AWSResponse:
        body = request.body or b""
        sent = body.encode() if isinstance(body, str) else bytes(body)
        seen.append(Asked(request.method, request.url, (), sent))
        made = make(seen[-1])
        return AWSResponse(request.url, made.status, dict(made.headers), _Raw(made.chunks))

    client.meta.events.register_first(f"before-send.{service}", answer)
    try:
        result = getattr(client, operation)(**arguments)
        for name in {"stream", "body", "completion"} & result.keys():
            body = result[name]
            result[name] = body.read() if hasattr(body, "read") else list(body)
    finally:
        client.meta.events.unregister(f"before-send.{service}", answer)
    return seen[-1], result
