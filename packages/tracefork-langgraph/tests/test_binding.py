"""Bound models record and replay by themselves; nothing else is touched by it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from langchain_core.language_models import FakeListChatModel

import tracefork_core as tracefork
from tracefork_langgraph import bind, unbind
from tracefork_testkit import ProviderServer


@pytest.fixture
def exchanges(tape: Path) -> Callable[[], int]:
    """Count what is on the tape."""

    def count() -> int:
        with tracefork.Tape.open(tape) as opened:
            return len(opened.exchanges)

    return count


def ask(model: Any) -> list[str]:
    """Ask in each of the four ways, on one event loop."""

    async def later() -> list[str]:
        answer = await model.ainvoke("hello")
        return [str(answer.content), *[str(c.content) async for c in model.astream("hello")]]

    answer, chunks = model.invoke("hello"), list(model.stream("hello"))
    return [str(answer.content), *[str(c.content) for c in chunks], *asyncio.run(later())]


def test_a_bound_model_records_and_replays(
    model: Any, twice: Any, exchanges: Any, kind: str
) -> None:
    """Sync, async and streaming are on the tape, and come from it with the provider gone."""
    bound = bind(model(kind))
    recorded, replayed = twice(lambda: ask(bound), ambient=False)
    assert replayed == recorded
    assert exchanges() == 4


def test_binding_and_ambient_patching_record_once(
    model: Any, twice: Any, exchanges: Any, kind: str
) -> None:
    """A bound model in an ambient session crosses one seam, not two."""
    bound = bind(model(kind))
    recorded, replayed = twice(lambda: str(bound.invoke("hello").content))
    assert replayed == recorded
    assert exchanges() == 1


def test_a_model_that_shares_the_http_client_is_untouched(
    model: Any, tape: Path, exchanges: Any, kind: str, server: ProviderServer
) -> None:
    """LangChain gives both models one cached client; the unbound one stays off the tape."""
    bound, other = model(kind), model(kind)
    assert http_clients(bound) == http_clients(other), (
        "the clients are not shared: nothing is shown"
    )
    bind(bound)
    with tracefork.record(tape, ambient=False):
        other.invoke("hello")
        list(other.stream("hello"))
    assert exchanges() == 0
    assert len(server.requests) == 2
    assert set(http_clients(bound)).isdisjoint(http_clients(other))


def test_what_is_derived_from_a_bound_model_is_bound(
    model: Any, tape: Path, exchanges: Any, kind: str
) -> None:
    """Tools, config, retries, fallbacks and copies of a bound model record too."""
    bound = bind(model(kind))
    derived = [
        bound.bind_tools([]),
        bound.with_config(tags=["x"]),
        bound.with_retry(),
        bound.with_fallbacks([bound]),
        bound.model_copy(),
    ]
    with tracefork.record(tape, ambient=False):
        for runnable in derived:
            runnable.invoke("hello")
    assert exchanges() == len(derived)


def test_binding_twice_is_binding_once(model: Any, tape: Path, exchanges: Any, kind: str) -> None:
    """The second time changes nothing, and each call is one exchange."""
    bound = bind(model(kind))
    clients = http_clients(bound)
    assert bind(bound) is bound
    assert http_clients(bound) == clients
    with tracefork.record(tape, ambient=False):
        bound.invoke("hello")
    assert exchanges() == 1


def test_unbinding_gives_the_model_its_own_client_back(
    model: Any, tape: Path, exchanges: Any, kind: str
) -> None:
    """After `unbind` the very same clients are there, and nothing is recorded."""
    asked = model(kind)
    clients = http_clients(asked)
    assert clients
    unbind(bind(asked))
    assert http_clients(asked) == clients
    with tracefork.record(tape, ambient=False):
        asked.invoke("hello")
    assert exchanges() == 0


def test_the_original_client_stays_open(model: Any, tape: Path, exchanges: Any, kind: str) -> None:
    """A client that nobody else holds is kept: its pool would be closed under the bound copy."""
    options = {"default_request_timeout": 60.0} if kind == "anthropic" else {"timeout": 60.0}
    bound = bind(model(kind, **options))
    gc.collect()
    with tracefork.record(tape, ambient=False):
        for _ in range(2):
            bound.invoke("hello")
    assert exchanges() == 2


def test_outside_a_session_a_bound_model_just_works(
    model: Any, server: ProviderServer, kind: str
) -> None:
    """Without a session every call goes where it always went."""
    assert ask(bind(model(kind)))
    assert len(server.requests) == 4


def test_a_model_without_a_known_client_is_refused() -> None:
    """The error names the model and what covers it all the same."""
    with pytest.raises(tracefork.UsageError, match=r"FakeListChatModel.*ambient=True"):
        bind(FakeListChatModel(responses=["x"]))


@pytest.fixture
def proxy(server: ProviderServer) -> Iterator[str]:
    """A forward proxy that sends everything to the server; its address."""

    class Forward(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            kept = {"content-type", "authorization", "x-api-key", "anthropic-version"}
            headers = {k: v for k, v in self.headers.items() if k.lower() in kept}
            answer = httpx.post(
                server.url + urlsplit(self.path).path,
                content=body,
                headers={**headers, "via": "proxy"},
                trust_env=False,
            )
            self.send_response(answer.status_code)
            self.send_header("content-type", answer.headers["content-type"])
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Forward) as http:
        thread = Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def test_a_model_behind_a_proxy_is_bound(
    model: Any,
    proxy: str,
    server: ProviderServer,
    tape: Path,
    exchanges: Any,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy from the environment is another transport of the client: it is covered too."""
    monkeypatch.setenv("HTTP_PROXY", proxy)
    path = "" if kind == "anthropic" else "/v1"
    # A host of its own: clients are cached by base URL, together with the proxy they found.
    bound = bind(model(kind, base_url=f"http://{kind}.example{path}"))
    with tracefork.record(tape, ambient=False):
        recorded = bound.invoke("hello").content
    assert server.requests[0].header("via") == "proxy"
    server.stop()
    with tracefork.replay(tape, ambient=False):
        assert bound.invoke("hello").content == recorded


def http_clients(model: Any) -> list[int]:
    """Return the identity of each HTTP client that a model's SDK clients use."""
    if hasattr(model, "root_client"):
        return [id(sdk._client) for sdk in (model.root_client, model.root_async_client)]
    return [id(sdk._client) for sdk in (model._client, model._async_client)]
