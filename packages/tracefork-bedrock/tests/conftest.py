"""Clients of Bedrock at a scripted server, and a server that sends exactly these bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer
from tracefork_testkit.http1 import Delivery, ReceivedRequest

KEYS = {
    "aws_access_key_id": "AKIAEXAMPLEOFTRACE4",
    "aws_secret_access_key": "secret-of-the-example/0123456789abcdef",
    "aws_session_token": "token-of-the-example-0123456789abcdef",
}
HELLO: Any = [{"role": "user", "content": [{"text": "@think slowly\n@say Grüße from a tape"}]}]


class ByteServer(ProviderServer):
    """Answers each request with the next of some deliveries."""

    def __init__(self, *deliveries: Delivery) -> None:
        super().__init__()
        self._deliveries = iter(deliveries)

    def answer(self, received: ReceivedRequest) -> Delivery:
        self._received.append(received)
        return next(self._deliveries)


_clients: list[Any] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close what a test leaves open."""
    yield
    while _clients:
        _clients.pop().close()


@pytest.fixture(autouse=True)
def _no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide what this machine knows about AWS: variables, and files in the home."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """The path of the test's tape."""
    return tmp_path / "run.tape"


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A server with new ids and texts for each request, whose frames are cut anywhere."""
    with ProviderServer(nondeterministic=True, cut_anywhere=True) as server:
        yield server


@pytest.fixture
def client(server: ProviderServer) -> Any:
    """A client of Bedrock at that server."""
    return client_at(server)


def client_at(server: ProviderServer, service: str = "bedrock-runtime", **options: Any) -> Any:
    """Return a client that has keys and a region, and retries nothing."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 1}).merge(
        options.pop("config", Config())
    )
    given = {"region_name": "us-east-1", "endpoint_url": server.url, **KEYS, **options}
    _clients.append(boto3.client(service, config=config, **given))
    return _clients[-1]


def exchanges(tape: Path) -> list[Any]:
    """Return the exchanges of a tape."""
    with tracefork.Tape.open(tape) as opened:
        return list(opened.exchanges)


def chunks(tape: Path) -> list[list[bytes]]:
    """Return the chunks of each answer on a tape."""
    with tracefork.Tape.open(tape) as opened:
        return [list(exchange.chunks) for exchange in opened.exchanges]


def both(tape: Path, run: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
    """Return what a run returns when it is recorded, and when it is replayed."""
    with tracefork.record(tape, **options):
        recorded = run()
    with tracefork.replay(tape, **options):
        replayed = run()
    return recorded, replayed
