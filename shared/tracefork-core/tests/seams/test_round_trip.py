"""What was recorded comes back as it was, from every library, with the server gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_testkit import ProviderServer

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
def test_replays_what_was_recorded(
    library: Any, round_trip: Callable[..., Any], what: str
) -> None:
    """Status, reason, version, raw headers in order, body and its pieces are the same."""
    with ProviderServer(compress=what == "gzipped json") as server:
        trip = round_trip(server, lambda url: library.all(url, ASKS[what]))
    assert trip.recorded[0].error is None
    assert trip.replayed == trip.recorded


def test_an_event_is_a_chunk(library: Any, round_trip: Callable[..., Any]) -> None:
    """A stream comes back event by event, as it was sent."""
    with ProviderServer(chunk_delay=0.005) as slow:
        trip = round_trip(slow, lambda url: library.all(url, STREAM))
    assert len(trip.replayed[0].chunks) > 5
    assert all(chunk.startswith(b"data: ") for chunk in trip.replayed[0].chunks)
    assert trip.replayed == trip.recorded


HEADS = {
    "no length": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nto the end",
    "old": b"HTTP/1.0 200 Fine\r\nX-Old: yes\r\n\r\nold",
    "no reason": b"HTTP/1.1 299 \r\nContent-Length: 2\r\n\r\nok",
    "a reason of its own": b"HTTP/1.1 418 I'm a Te\xc3\xa4pot\r\nContent-Length: 0\r\n\r\n",
    "twice": b"HTTP/1.1 200 OK\r\nx-A: 1\r\nX-B: 2\r\nx-a: 3\r\nContent-Length: 0\r\n\r\n",
    "bytes": b"HTTP/1.1 200 OK\r\nX-Latin: caf\xe9\r\nX-Utf: \xc3\xa9\r\nContent-Length: 0\r\n\r\n",
    "hint first": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\n\r\n",
    "brotli": b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 7\r\n\r\n\x8b\x01\x80abcd\x03"[:-1],
}


@pytest.mark.parametrize("head", HEADS)
def test_replays_odd_heads(
    library: Any, wire: Callable[..., Any], round_trip: Callable[..., Any], head: str
) -> None:
    """Old versions, odd reasons, repeated and badly spelled headers, bodies without a length."""
    trip = round_trip(wire(HEADS[head]), lambda url: library.one(url, "/"))
    assert trip.recorded.status or trip.recorded.error
    assert trip.replayed == trip.recorded


def test_replays_connections_that_were_kept_alive(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """One client asks ten times on one connection, and gets ten answers in order again."""
    asks = [{"path": f"/bytes/{n}"} for n in range(1, 11)]
    trip = round_trip(provider, lambda url: library.all(url, *asks))
    assert [len(seen.body) for seen in trip.replayed] == list(range(1, 11))
    assert provider.connections == 1


def test_another_request_diverges(library: Any, provider: ProviderServer, tmp_path: Path) -> None:
    """A replay that asks for something else gets no answer: what matches is not chance."""
    url = provider.url
    with record(tmp_path / "one.tape"):
        library.one(url, "/echo", method="POST", content=b"this")
    with (
        pytest.raises(DivergenceError, match="recorded +this"),
        replay(tmp_path / "one.tape"),
    ):
        library.one(url, "/echo", method="POST", content=b"that")


def test_a_replay_needs_no_server(
    library: Any, provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """The replay of a hundred exchanges makes no request: the server was stopped before."""
    trip = round_trip(provider, lambda url: library.all(url, *[{"path": "/echo"}] * 100))
    assert len(provider.requests) == 100
    assert len(trip.tape) == 100
