"""Retries happen again, in every mode, and a replay waits for none of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

import tracefork_core as tracefork
from tracefork_testkit import Fault, ProviderServer, Reply

from .conftest import HELLO, both, client_at, exchanges

MODES = ["legacy", "standard", "adaptive"]


def retrying(mode: str, attempts: int) -> Config:
    return Config(
        retries={"mode": mode, "total_max_attempts": attempts},  # type: ignore[arg-type,unused-ignore]
        read_timeout=0.3,
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_call_is_retried_as_often_and_without_waiting(
    mode: str, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rate limiter of the mode "adaptive" must not wait either: its clock is the tape's."""
    with (
        ProviderServer([Fault(429, times=3), Reply("at last")]) as server,
        monkeypatch.context() as impatient,
    ):
        # A recording waits as long as botocore says, which would take seconds here.
        impatient.setattr("botocore.retryhandler.delay_exponential", lambda *_, **__: 0.01)
        backoff = "botocore.retries.standard.ExponentialBackoff.delay_amount"
        impatient.setattr(backoff, lambda *_: 0.01)
        impatient.setattr("botocore.retries.bucket.TokenBucket.acquire", lambda _: True)
        client = client_at(server, config=retrying(mode, 4))
        with tracefork.record(tape):
            recorded = client.converse(modelId="m", messages=HELLO)
    assert len(exchanges(tape)) == 4
    assert recorded["ResponseMetadata"]["RetryAttempts"] == 3
    with tracefork.replay(tape):
        began = time.perf_counter()
        replayed = client.converse(modelId="m", messages=HELLO)
        took = time.perf_counter() - began
    assert replayed == recorded
    assert took < 0.2


def test_a_call_gives_up_after_the_same_attempts(tape: Path) -> None:
    """The metadata of the error says so, and replays."""
    with ProviderServer([Fault(503, times=2)]) as server:
        client = client_at(server, config=retrying("standard", 2))

        def run() -> Any:
            with pytest.raises(client.exceptions.ServiceUnavailableException) as raised:
                client.converse(modelId="m", messages=HELLO)
            return raised.value.response["ResponseMetadata"]

        recorded, replayed = both(tape, run)
    assert recorded["MaxAttemptsReached"] is True
    assert replayed == recorded


@pytest.mark.parametrize(
    ("kind", "error"), [("reset", ConnectionClosedError), ("timeout", ReadTimeoutError)]
)
def test_an_attempt_that_fails_is_retried_again(kind: Any, error: Any, tape: Path) -> None:
    """A connection that breaks and an answer that does not come are attempts like others."""
    with ProviderServer([Fault(kind=kind), Reply("then")], cut_anywhere=True) as server:
        client = client_at(server, config=retrying("legacy", 2))
        recorded, replayed = both(tape, lambda: client.converse(modelId="m", messages=HELLO))
    assert recorded["ResponseMetadata"]["RetryAttempts"] == 1
    assert replayed == recorded
    with ProviderServer([Fault(kind=kind)]) as server:
        client = client_at(server, config=retrying("legacy", 1))

        def run() -> Any:
            with pytest.raises(error) as raised:
                client.converse(modelId="m", messages=HELLO)
            return str(raised.value)

        recorded, replayed = both(tape.with_name("other.tape"), run)
    assert replayed == recorded


def test_a_divergence_is_one_attempt(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed prompt is no error of the network: no mode may ask again."""
    with ProviderServer() as server:
        client = client_at(server, config=retrying("standard", 4))
        with tracefork.record(tape):
            client.converse(modelId="m", messages=HELLO)
    waits: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time.sleep", waits.append)
    other: Any = [{"role": "user", "content": [{"text": "something else"}]}]
    with pytest.raises(tracefork.DivergenceError, match="/messages/0/content/0/text"):
        with tracefork.replay(tape):
            client.converse(modelId="m", messages=other)
    assert not waits
