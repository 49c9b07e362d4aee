"""What is special about requests: decoded reads, wrapped exceptions, adapters, files."""

from __future__ import annotations

import contextvars
import email.utils
import io
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
import time_machine
import urllib3

from tracefork_core import DivergenceError, Edit, Tape, bind, fork, record, replay
from tracefork_testkit import Fault, ProviderServer, Reply

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def chat(url: str, **options: Any) -> requests.Response:
    """Call a model that streams its answer."""
    body = {**CHAT, "stream": True}
    return requests.post(f"{url}/v1/chat/completions", json=body, timeout=10, **options)


READS: dict[str, Callable[[str], Any]] = {
    "json": lambda url: requests.post(f"{url}/v1/chat/completions", json=CHAT, timeout=9).json(),
    "gzip": lambda url: requests.get(f"{url}/gzip", timeout=9).text,
    "lines": lambda url: list(chat(url, stream=True).iter_lines()),
    "pieces of seven": lambda url: list(chat(url, stream=True).iter_content(7)),
    "as they come": lambda url: list(chat(url, stream=True).iter_content(None)),
    "gzip in pieces": lambda url: list(requests.get(f"{url}/gzip", stream=True).iter_content(9)),
    "raw": lambda url: requests.get(f"{url}/bytes/99", stream=True).raw.read(),
    "raw, in parts": lambda url: [
        (raw := requests.get(f"{url}/bytes/99", stream=True).raw).read(90),
        raw.read(90),
        raw.read(90),
    ],
    "raw chunks as one": lambda url: requests.get(f"{url}/chunked?n=5", stream=True).raw.read(),
    "one by one": lambda url: requests.get(f"{url}/chunked?n=5", stream=True).raw.read1(),
}


@pytest.mark.parametrize("how", READS)
def test_every_way_to_read_replays(
    provider: ProviderServer, round_trip: Callable[..., Any], how: str
) -> None:
    """Whole, decoded, by lines, by size, from the raw stream: the agent gets the same pieces."""
    trip = round_trip(provider, READS[how])
    assert trip.recorded
    assert trip.replayed == trip.recorded


def test_a_tape_holds_the_bytes_of_the_wire(
    provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """A compressed body is stored compressed, with the header that says so."""
    trip = round_trip(provider, lambda url: requests.get(f"{url}/gzip", timeout=9).content)
    with Tape.open(trip.path) as tape:
        (exchange,) = tape.exchanges
        assert exchange.response_body.startswith(b"\x1f\x8b")
        assert ("content-encoding", "gzip") in {
            (name.lower(), value) for name, value in exchange.response_headers
        }
    assert trip.replayed == trip.recorded


def caught(act: Callable[[], object]) -> tuple[type, type, str, bool]:
    """Return the class of an exception, of what it wraps, its text, and whether it has a URL."""
    with pytest.raises(requests.RequestException) as error:
        act()
    request = error.value.request
    return type(error.value), type(error.value.args[0]), str(error.value), request is not None


BREAKS: dict[str, tuple[Fault, type, type]] = {
    "no head": (
        Fault(kind="timeout"),
        requests.ReadTimeout,
        urllib3.exceptions.ReadTimeoutError,
    ),
    "reset": (
        Fault(kind="reset"),
        requests.ConnectionError,
        urllib3.exceptions.ProtocolError,
    ),
    "reset in the body": (
        Fault(kind="truncate", after_chunks=2, reply=Reply("one two three four five six")),
        requests.exceptions.ChunkedEncodingError,
        urllib3.exceptions.ProtocolError,
    ),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_an_exception_wraps_the_same_class_at_replay(
    round_trip: Callable[..., Any], broken: str
) -> None:
    """SDKs decide by the wrapped class whether to retry."""
    fault, outer, inner = BREAKS[broken]

    def act(url: str) -> Any:
        session = requests.Session()
        body = {**CHAT, "stream": True}
        post = f"{url}/v1/chat/completions"
        return caught(lambda: session.post(post, json=body, timeout=(5, 0.2)))

    with ProviderServer([fault]) as server:
        trip = round_trip(server, act)
    assert trip.recorded[:2] == (outer, inner)
    assert trip.replayed == trip.recorded


@pytest.mark.parametrize("kind", ["refused", "no such host"])
def test_the_reason_of_a_failed_connection_replays(tmp_path: Path, kind: str) -> None:
    """Agents tell an unknown host from a server that is down by the reason within."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    def act() -> tuple[type, str]:
        url = (
            "http://no.such.host.invalid/"
            if kind == "no such host"
            else f"http://127.0.0.1:{port}/"
        )
        with pytest.raises(requests.ConnectionError) as error:
            requests.get(url, timeout=9)
        reason = error.value.args[0].reason
        return type(reason), str(reason)

    with record(tmp_path / "run.tape"):
        recorded = act()
    with replay(tmp_path / "run.tape"):
        assert act() == recorded
    expected = "NameResolutionError" if kind == "no such host" else "NewConnectionError"
    assert recorded[0] is getattr(urllib3.exceptions, expected)


def test_retries_inside_urllib3_are_one_exchange(round_trip: Callable[..., Any]) -> None:
    """An adapter with a `Retry` retries by itself; the tape holds the outcome."""

    def act(url: str) -> Any:
        again = urllib3.Retry(2, status_forcelist=[429], backoff_factor=0, allowed_methods=None)
        with requests.Session() as session:
            session.mount("http://", requests.adapters.HTTPAdapter(max_retries=again))
            return session.post(f"{url}/v1/chat/completions", json=CHAT, timeout=9).status_code

    with ProviderServer([Fault(status=429), Reply("fine")]) as server:
        trip = round_trip(server, act)
        assert len(server.requests) == 2
    assert trip.tape == [("POST", 200, "eof")]
    assert trip.replayed == trip.recorded == 200


def test_a_custom_adapter_runs_at_replay(
    provider: ProviderServer, round_trip: Callable[..., Any]
) -> None:
    """A subclass is above the seam: its code around `send` runs."""

    class Counting(requests.adapters.HTTPAdapter):
        sent = 0

        def send(self, *args: Any, **options: Any) -> Any:
            self.sent += 1
            response = super().send(*args, **options)
            response.headers["x-counted"] = str(self.sent)
            return response

    def act(url: str) -> Any:
        with requests.Session() as session:
            session.mount("http://", Counting())
            got = [session.get(f"{url}/bytes/3", timeout=9) for _ in range(2)]
        return [(one.headers["x-counted"], one.content) for one in got]

    trip = round_trip(provider, act)
    assert [counted for counted, _ in trip.replayed] == ["1", "2"]
    assert trip.replayed == trip.recorded


class ReadOnce(io.RawIOBase):
    """A file that cannot seek, like a pipe."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._data.read(size)


@pytest.mark.parametrize("kind", [io.BytesIO, ReadOnce, io.StringIO])
def test_a_file_is_sent_whole(
    provider: ProviderServer, round_trip: Callable[..., Any], kind: Any
) -> None:
    """It is read once to be compared, and the server gets all of it."""
    data = "what a file holds" if kind is io.StringIO else b"what a file holds"

    def act(url: str) -> Any:
        file = kind(data)
        return requests.post(f"{url}/echo", data=file, timeout=9).content, file.read()

    trip = round_trip(provider, act)
    assert provider.requests[0].body == b"what a file holds"
    with Tape.open(trip.path) as tape:
        assert tape.exchanges[0].request_body == b"what a file holds"
    assert trip.replayed == trip.recorded


def test_a_fork_sends_a_changed_request(tmp_path: Path) -> None:
    """With its own length; the agent sees its own request."""

    def act(url: str) -> Any:
        got = requests.post(f"{url}/v1/chat/completions", json=CHAT, timeout=9)
        return got.request.body, got.json()["model"]

    with ProviderServer() as server:
        with record(tmp_path / "run.tape"):
            act(server.url)
        with fork(tmp_path / "run.tape", 0, Edit(model="a-much-longer-name")):
            asked, model = act(server.url)
        sent = server.requests[-1]
    assert model == "a-much-longer-name"
    assert sent.header("content-length") == str(len(sent.body))
    assert b"a-much-longer-name" not in asked


def test_a_divergence_reaches_the_agent(provider: ProviderServer, tmp_path: Path) -> None:
    """It is not an exception of requests: code that retries those does not retry it."""
    with record(tmp_path / "run.tape"):
        requests.get(f"{provider.url}/bytes/3", timeout=9)
    with pytest.raises(DivergenceError), replay(tmp_path / "run.tape"):
        with pytest.raises(DivergenceError, match="/bytes/4"):
            requests.get(f"{provider.url}/bytes/4", timeout=9)


def test_two_sessions_have_a_tape_each(provider: ProviderServer, tmp_path: Path) -> None:
    """Two recordings at once, in two threads, hold the requests of their own thread."""
    meeting = threading.Barrier(2)

    def run(n: int) -> None:
        with record(tmp_path / f"{n}.tape"):
            meeting.wait(10)
            requests.get(f"{provider.url}/bytes/{n}", timeout=9)
            meeting.wait(10)

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(run, n)) for n in (1, 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in (1, 2):
        with Tape.open(tmp_path / f"{n}.tape") as tape:
            assert [exchange.url[-2:] for exchange in tape.exchanges] == [f"/{n}"]


def test_a_bound_session_is_a_session(provider: ProviderServer, tmp_path: Path) -> None:
    """It keeps its headers and cookies, can be bound again, and leaves the original unchanged."""
    original = requests.Session()
    original.headers["x-mine"] = "kept"
    bound = bind(bind(original))
    assert isinstance(bound, requests.Session)
    with record(tmp_path / "run.tape", ambient=False):
        bound.get(f"{provider.url}/set-cookie", timeout=9)
        original.get(f"{provider.url}/echo", timeout=9)
    assert provider.requests[0].header("x-mine") == "kept"
    assert provider.requests[1].header("cookie") is not None
    with Tape.open(tmp_path / "run.tape") as tape:
        assert [exchange.url.rpartition("/")[2] for exchange in tape.exchanges] == ["set-cookie"]
    with replay(tmp_path / "run.tape", ambient=False):
        assert bound.get(f"{provider.url}/set-cookie", timeout=9).ok


def test_expiry_of_cookies_uses_the_recorded_clock(tape: Path, wire: Callable[..., Any]) -> None:
    """A session reads it at each answer, and so does the response, which is made below the seam.

    No read is missed at replay, and what had not run out when this was recorded has not later.
    """
    tomorrow = email.utils.formatdate(time.time() + 24 * 3600, usegmt=True)
    head = f"HTTP/1.1 200 OK\r\nset-cookie: a=b; expires={tomorrow}\r\ncontent-length: 0\r\n\r\n"

    def run(url: str) -> list[tuple[dict[str, str | None], dict[str, str | None]]]:
        session = requests.Session()
        answers = [session.get(url, timeout=9) for _ in range(3)]
        return [(answer.cookies.get_dict(), session.cookies.get_dict()) for answer in answers]

    server = wire(*[head.encode()] * 3)
    with record(tape):
        assert run(server.url) == [({"a": "b"}, {"a": "b"})] * 3
    with time_machine.travel(time.time() + 365 * 24 * 3600), replay(tape) as replaying:
        assert run(server.url) == [({"a": "b"}, {"a": "b"})] * 3
    assert replaying.clock_misses == 0
