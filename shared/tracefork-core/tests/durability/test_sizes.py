"""Large, empty and many exchanges come back from a tape unchanged."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import httpx2
import pytest

from tracefork_core import Tape, TapeError, record, replay
from tracefork_core.tape import TapeWriter
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import (
    EXCHANGE,
    ExchangeAside,
    ExchangePayload,
    Receipt,
    RequestRecord,
    ResponseRecord,
)
from tracefork_core.tape.schema import Mode
from tracefork_testkit import ProviderServer

LARGE = 50_000_000


def test_a_body_of_50_mb_replays(tape: Path, provider: ProviderServer, http: httpx2.Client) -> None:
    """An answer of that size is recorded and replayed with its bytes and chunks."""

    def run() -> tuple[int, str]:
        hashed, chunks = hashlib.sha256(), 0
        with http.stream("GET", f"{provider.url}/bytes/{LARGE}") as response:
            for chunk in response.iter_raw():
                hashed.update(chunk)
                chunks += 1
        return chunks, hashed.hexdigest()

    with record(tape):
        first = run()
    with replay(tape):
        assert run() == first
    with Tape.open(tape) as recorded:
        assert len(recorded.exchanges[0].response_body) == LARGE


# To look for secrets in 50 MB of noise takes half a minute: less of it shows that it is done.
@pytest.mark.parametrize(("mode", "size"), [("raw", LARGE), ("safe", LARGE // 20)])
def test_a_large_request_is_compared(
    tape: Path, provider: ProviderServer, http: httpx2.Client, mode: Mode, size: int
) -> None:
    """Its body is random, so no codec makes it smaller."""
    body = random.Random(1).randbytes(size)
    with record(tape, mode=mode):
        first = http.post(f"{provider.url}/status/201", content=body)
    with replay(tape):
        assert http.post(f"{provider.url}/status/201", content=body).content == first.content
    with Tape.open(tape) as recorded:
        assert recorded.exchanges[0].request_body == body


def test_an_empty_body_replays(tape: Path, provider: ProviderServer, http: httpx2.Client) -> None:
    """Empty requests and answers, with and without a declared length."""
    paths = ("/bytes/0", "/chunked?n=0", "/status/204")
    with record(tape):
        first = [http.get(provider.url + path) for path in paths]
    with replay(tape):
        again = [http.get(provider.url + path) for path in paths]
    assert [answer.content for answer in again] == [answer.content for answer in first]
    assert [answer.status_code for answer in again] == [200, 200, 204]
    with Tape.open(tape) as recorded:
        assert {exchange.response_body for exchange in recorded.exchanges} == {b""}
        assert {exchange.end for exchange in recorded.exchanges} == {"eof"}


def test_two_thousand_exchanges_are_listed(tape: Path) -> None:
    """In the order of the requests, though they ended in another, with the receipt's digest."""
    count, nothing = 2_000, hashlib.sha256(b"").hexdigest()
    writer = TapeWriter(tape, describe())
    for n in reversed(range(count)):
        request = RequestRecord("GET", f"http://model.test/{n}", [], nothing)
        payload = ExchangePayload(n, request, ResponseRecord(204, "No Content", [], nothing))
        aside = ExchangeAside("main", "test", n, turns=[[2 * n, 2]], end="eof")
        writer.note(EXCHANGE, payload=payload, aside=aside)
    receipt = writer.close(Receipt(digest="", exchanges=0))
    assert receipt.exchanges == count
    with Tape.open(tape) as recorded:
        assert recorded.complete
        assert recorded.digest == receipt.digest
        urls = [exchange.url for exchange in recorded.exchanges]
    assert urls == [f"http://model.test/{n}" for n in range(count)]


def test_a_body_that_packs_like_a_bomb_ends_the_recording(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A reader would refuse it. The agent gets its answer, and the tape keeps what came before."""
    recording = record(tape)
    recording.__enter__()
    http.get(f"{provider.url}/bytes/10")
    assert http.post(f"{provider.url}/status/204", content=b"a" * 70_000_000).is_success
    with pytest.raises(TapeError, match="decompression bomb"):
        recording.__exit__(None, None, None)
    with Tape.open(tape) as kept:
        assert kept.exchanges[0].end == "eof"
