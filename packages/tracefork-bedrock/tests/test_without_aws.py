"""A replay needs nothing of AWS, and a tape holds nothing that signs requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer, closed_network
from tracefork_testkit.http1 import json_delivery

from .conftest import HELLO, KEYS, ByteServer, client_at

VOLATILE = {
    "authorization",
    "x-amz-date",
    "x-amz-security-token",
    "x-amz-content-sha256",
    "amz-sdk-invocation-id",
    "amz-sdk-request",
    "user-agent",
    "x-amz-user-agent",
    "x-amzn-trace-id",
}


def ask(client: Any) -> Any:
    return client.converse(modelId="m", messages=HELLO)["output"]


def test_a_replay_needs_no_keys_no_region_and_no_profile(
    server: ProviderServer, client: Any, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks for none either: the metadata service of EC2 is a connection like any other."""
    with tracefork.record(tape):
        recorded = ask(client)
    monkeypatch.setenv("AWS_PROFILE", "of another machine")
    with closed_network() as network, tracefork.replay(tape):
        session = boto3.Session()
        assert ask(session.client("bedrock-runtime", endpoint_url=server.url)) == recorded
    assert not network.attempts


def test_a_client_without_keys_is_enough_for_a_replay(
    server: ProviderServer, client: Any, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been made before the replay, when nothing had keys for it."""
    with tracefork.record(tape):
        recorded = ask(client)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    empty: Any = dict.fromkeys(KEYS)
    with_none = client_at(server, **empty)
    with tracefork.replay(tape):
        assert ask(with_none) == recorded
    with pytest.raises(Exception, match="Unable to locate credentials"):
        ask(with_none)


def test_the_region_is_the_recorded_one_unless_the_program_gives_one(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host of a request has it, so another region would be another request."""
    host = "bedrock-runtime.eu-central-1.amazonaws.com"
    with ProviderServer().real_hosts(host) as server:
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        with tracefork.record(tape):
            recorded = ask(boto3.client("bedrock-runtime", **KEYS))
        assert server.requests[0].header("host") == host
    for other in (None, "us-west-2"):
        monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
        if other is not None:
            monkeypatch.setenv("AWS_DEFAULT_REGION", other)
        with tracefork.replay(tape):
            assert ask(boto3.client("bedrock-runtime")) == recorded
        assert boto3.Session().region_name == other
    with pytest.raises(tracefork.DivergenceError, match="us-west-2"), tracefork.replay(tape):
        ask(boto3.client("bedrock-runtime", region_name="us-west-2"))


def test_nothing_that_signs_a_request_is_on_a_tape(
    server: ProviderServer, client: Any, tape: Path
) -> None:
    """The server saw all of it, so this looks for what was there."""
    with tracefork.record(tape):
        ask(client)
    seen = {name.lower(): value for name, value in server.requests[0].headers}
    assert {"authorization", "x-amz-date", "x-amz-security-token"} <= seen.keys()
    with tracefork.Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        held = exchange.canonical + exchange.beside + exchange.request_body + exchange.response_body
        names = {name.lower() for name, _ in exchange.request_headers}
    raw = tape.read_bytes()
    for secret in (*KEYS.values(), seen["authorization"][-64:], seen["x-amz-date"]):
        assert secret.encode() not in held + raw
    assert not names & VOLATILE
    assert names, "the other headers are there"


def test_a_recording_does_not_count_the_search_for_keys(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container asks a service for its keys: that is no part of what the agent does."""
    keys = {"AccessKeyId": "A", "SecretAccessKey": "B", "Token": "C"}
    keys["Expiration"] = "2040-01-01T00:00:00Z"
    with ByteServer(json_delivery(200, keys)) as server:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url)
        with tracefork.record(tape) as recording:
            boto3.client("sts", region_name="us-east-1").close()
    assert server.requests, "it looked for keys"
    assert recording.receipt is not None
    assert recording.receipt.strays == []
