"""Bound models record and replay without ambient patching, and change nothing else."""

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
    """Count the exchanges on the tape."""

    def count() -> int:
        with tracefork.Tape.open(tape) as opened:
            return len(opened.exchanges)

    return count


def ask(model: Any) -> list[str]:
    """Call a model in each of the four ways, on one event loop."""

    async def later() -> list[str]:
        answer = await model.ainvoke("hello")
        return [str(answer.content), *[str(c.content) async for c in model.astream("hello")]]

    answer, chunks = model.invoke("hello"), list(model.stream("hello"))
    return [str(answer.content), *[str(c.content) for c in chunks], *asyncio.run(later())]


def test_a_bound_model_records_and_replays(
    model: Any, twice: Any, exchanges: Any, kind: str
) -> None:
    """Sync, async and streaming calls are on the tape, and replay with the provider stopped."""
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


def test_model_that_shares_the_http_client_is_not_recorded(
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


def test_models_derived_from_a_bound_model_are_bound(
    model: Any, tape: Path, exchanges: Any, kind: str
) -> None:
    """With tools, config, retries or fallbacks, and as a copy."""
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


def test_second_bind_changes_nothing(model: Any, tape: Path, exchanges: Any, kind: str) -> None:
    """Each call is still one exchange."""
    bound = bind(model(kind))
    clients = http_clients(bound)
    assert bind(bound) is bound
    assert http_clients(bound) == clients
    with tracefork.record(tape, ambient=False):
        bound.invoke("hello")
    assert exchanges() == 1


def test_unbind_restores_the_original_clients(
    model: Any, tape: Path, exchanges: Any, kind: str
) -> None:
    """After it nothing is recorded."""
    asked = model(kind)
    clients = http_clients(asked)
    assert clients
    unbind(bind(asked))
    assert http_clients(asked) == clients
    with tracefork.record(tape, ambient=False):
        asked.invoke("hello")
    assert exchanges() == 0


def test_bound_model_keeps_the_original_client_open(
    model: Any, tape: Path, exchanges: Any, kind: str
) -> None:
    """The client is kept alive: collected, it would close the pool that the bound copy uses."""
    options = {"default_request_timeout": 60.0} if kind == "anthropic" else {"timeout": 60.0}
    bound = bind(model(kind, **options))
    gc.collect()
    with tracefork.record(tape, ambient=False):
        for _ in range(2):
            bound.invoke("hello")
    assert exchanges() == 2


def test_bound_model_works_outside_a_session(model: Any, server: ProviderServer, kind: str) -> None:
    """Each of the four calls reaches the server."""
    assert ask(bind(model(kind)))
    assert len(server.requests) == 4


def test_bind_refuses_a_model_without_a_known_client() -> None:
    """The error names the model, and the setting that covers it."""
    with pytest.raises(tracefork.UsageError, match=r"FakeListChatModel.*ambient=True"):
        bind(FakeListChatModel(responses=["x"]))


@pytest.fixture
def proxy(server: ProviderServer) -> Iterator[str]:
    """A forward proxy that sends everything to the server; the value is its address."""

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


def test_bind_covers_a_proxy_from_the_environment(
    model: Any,
    proxy: str,
    server: ProviderServer,
    tape: Path,
    exchanges: Any,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy is another transport of the client."""
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
