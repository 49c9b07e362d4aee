"""Exchanges for the tests of providers: made by hand, and recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tracefork_core.providers import ModelCall, decode

TRAFFIC = Path(__file__).resolve().parents[5] / "shared" / "traffic" / "cassettes"

Ask = Callable[..., ModelCall]


@dataclass(frozen=True)
class Recorded:
    """An exchange with a real provider, from the recordings of a public test suite."""

    cassette: str
    method: str
    url: str
    request_headers: list[tuple[str, str]]
    request: bytes
    status: int
    response_headers: list[tuple[str, str]]
    response: bytes

    def decode(self, response: bytes | None = None) -> ModelCall | None:
        return decode(
            self.method,
            self.url,
            self.request_headers,
            self.request,
            self.status,
            self.response_headers,
            self.response if response is None else response,
        )


@pytest.fixture
def ask() -> Ask:
    """Decode an exchange given as Python values; a list is answered as a stream of events."""

    def ask(url: str, request: Any, answer: Any, status: int = 200) -> ModelCall:
        if isinstance(answer, list):
            body = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in answer)
            headers = [("Content-Type", "text/event-stream")]
        else:
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            headers = [("content-type", "application/json")]
        call = decode("POST", url, [], json.dumps(request).encode(), status, headers, body)
        assert call is not None
        return call

    return ask


@pytest.fixture(scope="session")
def traffic() -> list[Recorded]:
    """Return every recorded exchange; skip the test if the recordings are not installed."""
    if not TRAFFIC.is_dir():
        pytest.skip("recorded traffic of real providers is not ours to publish")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [
        _recorded(path, interaction)
        for path in sorted(TRAFFIC.rglob("*.yaml"))
        for interaction in yaml.load(path.read_bytes(), loader)["interactions"]
    ]


def _recorded(path: Path, interaction: dict[str, Any]) -> Recorded:
    request, response = interaction["request"], interaction["response"]
    return Recorded(
        f"{path.parent.name}/{path.name}",
        request["method"],
        request["uri"],
        _headers(request["headers"]),
        _body(request),
        response["status"]["code"],
        _headers(response["headers"]),
        _body(response),
    )


def _headers(headers: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, str(value))
        for name, values in headers.items()
        for value in (values if isinstance(values, list) else [values])
    ]


def _body(message: dict[str, Any]) -> bytes:
    if "parsed_body" in message:
        return json.dumps(message["parsed_body"], ensure_ascii=False).encode()
    body = message.get("body")
    body = body.get("string") if isinstance(body, dict) else body
    return body.encode() if isinstance(body, str) else body or b""
