"""Which parts of a request must be equal for the tape to answer it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import DivergenceError, UsageError, record, replay
from tracefork_testkit import ProviderServer

BASE: dict[str, Any] = {
    "method": "POST",
    "path": "/echo/a?b=1&max_tokens=5&page_token=x",
    "content": b'{"a": 1, "n": {"t": 5}, "l": [1, 2]}',
    "headers": {
        "accept": "a/b",
        "anthropic-beta": "one",
        "anthropic-version": "2023",
        "content-encoding": "identity",
        "content-type": "application/json",
        "openai-beta": "assistants=v1",
        "range": "bytes=0-1",
        "x-amz-target": "Bedrock.A",
    },
}


def ask(http: httpx2.Client, url: str, **changed: Any) -> httpx2.Response:
    asked = {**BASE, **changed}
    path = asked.pop("path")
    return http.request(url=f"{url}{path}", **asked)


def with_headers(**changed: str) -> dict[str, str]:
    return {**BASE["headers"], **{name.replace("_", "-"): value for name, value in changed.items()}}


CHANGED: dict[str, Mapping[str, Any]] = {
    "method": {"method": "PUT"},
    "path": {"path": "/echo/A?b=1&max_tokens=5&page_token=x"},
    "query": {"path": "/echo/a?b=2&max_tokens=5&page_token=x"},
    "query order": {"path": "/echo/a?max_tokens=5&b=1&page_token=x"},
    "a count of tokens": {"path": "/echo/a?b=1&max_tokens=6&page_token=x"},
    "a cursor": {"path": "/echo/a?b=1&max_tokens=5&page_token=y"},
    "one byte of the body": {"content": BASE["content"].replace(b"5", b"6")},
    "white space in the body": {"content": BASE["content"] + b" "},
    "no body": {"content": b""},
    "a missing header": {
        "headers": {name: v for name, v in BASE["headers"].items() if name != "openai-beta"}
    },
    **{
        name: {"headers": {**BASE["headers"], name: f"{value}x"}}
        for name, value in BASE["headers"].items()
    },
}
EQUAL: dict[str, Mapping[str, Any]] = {
    name: {"headers": with_headers(**{name: "other"})}
    for name in (
        "authorization",
        "x_api_key",
        "cookie",
        "user_agent",
        "x_stainless_retry_count",
        "idempotency_key",
        "traceparent",
        "x_request_id",
    )
}


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED)
def test_a_changed_part_diverges(
    tape: Path, provider: ProviderServer, http: httpx2.Client, changed: Mapping[str, Any]
) -> None:
    """One changed byte in a compared part raises at the call and at the end."""
    with record(tape):
        ask(http, provider.url)

    def run() -> None:
        with replay(tape), pytest.raises(DivergenceError):
            ask(http, provider.url, **changed)

    with pytest.raises(DivergenceError):
        run()


@pytest.mark.parametrize("changed", [{}, *EQUAL.values()], ids=["nothing", *EQUAL])
def test_parts_that_are_not_compared_may_change(
    tape: Path, provider: ProviderServer, http: httpx2.Client, changed: Mapping[str, Any]
) -> None:
    """Credentials, versions, retries and tracing ids differ in every run."""
    with record(tape):
        first = ask(http, provider.url)
    with replay(tape) as run:
        again = ask(http, provider.url, **changed)
    assert again.content == first.content
    assert run.digest == run.tape.digest


def test_an_ephemeral_loopback_port_is_not_compared(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A test server has another port each time; a port below the ephemeral range is compared."""
    with record(tape):
        ask(http, provider.url)
    with replay(tape):
        ask(http, "http://127.0.0.1:65000")
    with pytest.raises(DivergenceError, match="url"), replay(tape):
        ask(http, "http://127.0.0.1:8000")


def test_urls_are_normalised(tape: Path, provider: ProviderServer, http: httpx2.Client) -> None:
    """Clients differ in the case of scheme and host, and in an empty path."""
    with record(tape):
        assert http.get(f"HTTP://LOCALHOST:{provider.port}").status_code == 404
    with replay(tape):
        assert http.get(f"http://localhost:{provider.port}/").status_code == 404


def test_an_ipv6_host_replays(tape: Path, http: httpx2.Client) -> None:
    """The brackets of an IPv6 host stay, and its ephemeral port is not compared."""

    class Here(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

    class Server(HTTPServer):
        address_family = socket.AF_INET6

    with Server(("::1", 0), Here) as server:
        threading.Thread(target=server.handle_request).start()
        with record(tape):
            assert http.get(f"http://[::1]:{server.server_port}/x").status_code == 204
    with replay(tape) as run:
        assert http.get("http://[::1]:65000/x").status_code == 204
        assert run.tape.exchanges[0].request.url == "http://[::1]:*/x"


def test_a_multipart_body_with_a_random_boundary_replays(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Each upload draws a new boundary; the uploaded parts are compared."""

    def upload(content: bytes) -> bytes:
        files = {"file": ("a.txt", content, "text/plain")}
        return http.post(f"{provider.url}/echo", files=files, data={"purpose": "x"}).content

    with record(tape):
        upload(b"--content--")
    with replay(tape):
        upload(b"--content--")
    with replay(tape, match=["ignore:/x"]):
        upload(b"--content--")
    with pytest.raises(DivergenceError, match="tracefork-boundary"), replay(tape):
        upload(b"--context--")


@pytest.mark.parametrize("header", ["content-type: application/x", "accept: multipart/mixed"])
def test_a_boundary_outside_multipart_is_compared(
    tape: Path, provider: ProviderServer, http: httpx2.Client, header: str
) -> None:
    """Only multipart bodies have a random one."""
    name, _, value = header.partition(": ")

    def agent(boundary: str) -> None:
        headers = {name: f"{value}; boundary={boundary}"}
        http.post(f"{provider.url}/echo", content=b"--one", headers=headers)

    with record(tape):
        agent("one")
    with replay(tape):
        agent("one")
    with pytest.raises(DivergenceError, match=f"headers/{name}"), replay(tape):
        agent("two")


JSON = b'{"l":[1,2],"n":{"t":5},"a":1}'


@pytest.mark.parametrize(
    ("match", "content", "replays"),
    [
        ([], JSON, False),
        (["json"], JSON, True),
        (["json"], JSON.replace(b"5", b"6"), False),
        (["json"], b"not json", False),
        (["ignore:/n/t"], JSON.replace(b"5", b"6"), True),
        (["ignore:/n/t"], JSON.replace(b'{"t":5}', b"{}"), True),
        (["ignore:/n"], JSON.replace(b"5", b'{"deep": 1}'), True),
        (["ignore:/l/1"], JSON.replace(b"2", b"3"), True),
        (["ignore:/l/0"], JSON.replace(b"2", b"3"), False),
        (["ignore:/n/t"], JSON.replace(b'"a":1', b'"a":2'), False),
        (["json", "ignore:/a", "ignore:/n/t"], b'{"l":[1,2],"n":{"t":0},"a":{}}', True),
    ],
)
def test_named_matchers_widen_what_is_equal(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    match: list[str],
    content: bytes,
    *,
    replays: bool,
) -> None:
    """`json` compares values, `ignore:/pointer` leaves one out; nothing else is widened."""
    with record(tape):
        first = ask(http, provider.url)

    def run() -> bytes:
        with replay(tape, match=match):
            return ask(http, provider.url, content=content).content

    if replays:
        assert run() == first.content
    else:
        with pytest.raises(DivergenceError):
            run()


@pytest.mark.parametrize("body", [b'{"a": NaN}', b'{"a": %d}' % 2**70, b'"\\ud800"', b"[" * 9999])
def test_matchers_handle_unusual_json(
    tape: Path, provider: ProviderServer, http: httpx2.Client, body: bytes
) -> None:
    """A body that is barely JSON, or none, replays."""
    with record(tape):
        first = http.post(f"{provider.url}/echo", content=body)
    with replay(tape, match=["json"]):
        assert http.post(f"{provider.url}/echo", content=body).content == first.content


@pytest.mark.parametrize("match", [["yaml"], ["ignore"], ["ignore:a"], "json"])
def test_an_unknown_matcher_is_a_usage_error(tape: Path, match: list[str]) -> None:
    """It is refused before anything runs."""
    with record(tape):
        pass
    with pytest.raises(UsageError, match="json"), replay(tape, match=match):
        pass
