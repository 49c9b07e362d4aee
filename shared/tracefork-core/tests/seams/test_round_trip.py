"""What was recorded replays with every library, after the server has stopped."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brotli
import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_testkit import Hold, ProviderServer, Reply

CHAT: dict[str, Any] = {
    "path": "/v1/chat/completions",
    "method": "POST",
    "json": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
}
STREAM: dict[str, Any] = {**CHAT, "json": {**CHAT["json"], "stream": True}}

ASKS: dict[str, dict[str, Any]] = {
    "json": CHAT,
    "sse": STREAM,
    "gzip": {"path": "/gzip"},
    "gzipped json": {**CHAT, "headers": {"accept-encoding": "gzip"}},
    "chunked": {"path": "/chunked?n=7"},
    "slowly": {"path": "/chunked?n=4&delay=0.01"},
    "nothing": {"path": "/bytes/0"},
    "bytes": {"path": "/bytes/200000"},
    "head": {"path": "/bytes/64", "method": "HEAD"},
    "no content": {"path": "/status/204"},
    "not modified": {"path": "/status/304"},
    "missing": {"path": "/status/404"},
    "overloaded": {"path": "/status/529"},
}


@pytest.mark.parametrize("what", ASKS)
def test_an_exchange_replays(library: Any, round_trip: Callable[..., Any], what: str) -> None:
    """Status, reason, version, raw headers in order, body and its pieces are the same."""
    with ProviderServer(compress=what == "gzipped json") as server:
        trip = round_trip(server, lambda url: library.all(url, ASKS[what]))
    assert trip.recorded[0].error is None
    assert trip.replayed == trip.recorded


def test_a_stream_replays_event_by_event(library: Any, round_trip: Callable[..., Any]) -> None:
    """Each event is a chunk, as the server sent it."""
    with ProviderServer(chunk_delay=0.005) as slow:
        trip = round_trip(slow, lambda url: library.all(url, STREAM))
    assert len(trip.replayed[0].chunks) > 5
    assert all(chunk.startswith(b"data: ") for chunk in trip.replayed[0].chunks)
    assert trip.replayed == trip.recorded


OK = b"HTTP/1.1 200 OK\r\n"
HEADS = {
    "no length": OK + b"Content-Type: text/plain\r\n\r\nto the end",
    "old": b"HTTP/1.0 200 Fine\r\nX-Old: yes\r\n\r\nold",
    "no reason": b"HTTP/1.1 299 \r\nContent-Length: 2\r\n\r\nok",
    "its own reason": b"HTTP/1.1 418 I'm a Te\xc3\xa4pot\r\nContent-Length: 0\r\n\r\n",
    "twice": OK + b"x-A: 1\r\nX-B: 2\r\nx-a: 3\r\nContent-Length: 0\r\n\r\n",
    "bytes": OK + b"X-Latin: caf\xe9\r\nX-Utf: \xc3\xa9\r\nContent-Length: 0\r\n\r\n",
    "hint": b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\n1",
    "trailers": OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\n\r\n",
    "deflate": OK + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(b"deflated " * 99),
    "brotli": OK + b"Content-Encoding: br\r\n\r\n" + brotli.compress(b"brotli " * 99),
    "not brotli": OK + b"Content-Encoding: br\r\nContent-Length: 7\r\n\r\nneither",
    "not gzip": OK + b"Content-Encoding: gzip\r\nContent-Length: 7\r\n\r\nneither",
    "zstd": OK
    + b"Content-Encoding: zstd\r\nContent-Length: 14\r\n\r\n(\xb5/\xfd\x04\x00)\x00\x00hello",
}


@pytest.mark.parametrize("head", HEADS)
def test_unusual_heads_replay(
    library: Any, wire: Callable[..., Any], round_trip: Callable[..., Any], head: str
) -> None:
    """Old versions, odd reasons, repeated and misspelled headers, bodies without a length."""
    trip = round_trip(wire(HEADS[head]), lambda url: library.one(url, "/"))
    assert trip.recorded.status or trip.recorded.error
    assert trip.replayed == trip.recorded


def test_a_stream_stays_live(library: Any, tmp_path: Path) -> None:
    """The agent has an event, and the tape holds it, before the server sends the next."""
    hold, path, taped = Hold(after_chunks=1), tmp_path / "live.tape", []

    def at_the_first(seen: Any) -> None:
        if len(seen.chunks) == 1:
            assert hold.reached.wait(10)
            with Tape.open(path) as tape:
                taped.append(tape.exchanges[0].response_body)
            hold.release()

    with ProviderServer([Reply("one two three", hold=hold)]) as server, record(path):
        (seen,) = library.all(server.url, {**STREAM, "after_chunk": at_the_first})
    assert taped == seen.chunks[:1]
    assert taped[0].count(b"data: ") == 1
    assert seen.body.endswith(b"[DONE]\n\n")


def test_requests_on_a_kept_connection_replay(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """One client sends ten on one connection, and gets ten answers in order."""
    asks = [{"path": f"/bytes/{n}"} for n in range(1, 11)]
    trip = round_trip(provider, lambda url: library.all(url, *asks))
    assert [len(seen.body) for seen in trip.replayed] == list(range(1, 11))
    assert provider.connections == 1


def test_another_request_diverges(library: Any, provider: ProviderServer, tmp_path: Path) -> None:
    """Negative control: a replay does not answer another request."""
    url = provider.url
    with record(tmp_path / "one.tape"):
        library.one(url, "/echo", method="POST", content=b"this")
    with (
        pytest.raises(DivergenceError) as raised,
        replay(tmp_path / "one.tape"),
    ):
        library.one(url, "/echo", method="POST", content=b"that")
    assert (raised.value.divergence.recorded, raised.value.divergence.actual) == ("this", "that")


def test_a_replay_needs_no_server(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """The server is stopped, and thirty exchanges replay."""
    trip = round_trip(provider, lambda url: library.all(url, *[{"path": "/echo"}] * 30))
    assert len(provider.requests) == 30
    assert len(trip.tape) == 30
