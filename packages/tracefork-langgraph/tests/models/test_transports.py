"""Proxies from the environment and the user's own transports are bound with their client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

import tracefork_core as tracefork
from tracefork_langgraph import bind
from tracefork_testkit import ProviderServer

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start from an environment without proxies."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_bind_covers_a_proxy_from_the_environment(
    chat: Any,
    ask: Any,
    tape: Path,
    server: ProviderServer,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider acts as the proxy, which gets the whole address."""
    monkeypatch.setenv("HTTP_PROXY", server.url)
    url = f"http://{name}.example"  # Of its own: clients are cached by their address.
    model = bind(chat(name, url))
    with tracefork.record(tape, ambient=False):
        recorded = [ask(model, "invoke"), ask(model, "ainvoke")]
    asked = [request.path for request in server.requests]
    assert len(asked) == 2
    assert all(path.startswith(url) for path in asked)
    server.stop()
    with tracefork.replay(tape, ambient=False):
        assert [ask(model, "invoke"), ask(model, "ainvoke")] == recorded


@pytest.mark.parametrize(
    ("variable", "scheme"),
    [("ALL_PROXY", "http"), ("ALL_PROXY", "https"), ("HTTPS_PROXY", "https")],
)
def test_bind_honours_every_proxy_variable(
    chat: Any, ask: Any, tape: Path, monkeypatch: pytest.MonkeyPatch, variable: str, scheme: str
) -> None:
    """No proxy runs there: the connection error is recorded and replayed."""
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    url = f"{scheme}://{variable.lower().replace('_', '-')}.example"
    model = bind(chat("openai", url, max_retries=0))
    errors = []
    for session in (tracefork.record(tape, ambient=False), tracefork.replay(tape, ambient=False)):
        with session, pytest.raises(Exception, match=r"Connection error") as raised:
            ask(model, "invoke")
        errors.append(str(raised.value.__cause__))
    assert errors[0] == errors[1]
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.exchanges) == 1


class Marked:
    """Adds a header to every request."""

    def handle_request(self, request: Any) -> Any:
        request.headers["via"] = "a transport of our own"
        return super().handle_request(request)  # type: ignore[misc]


class MarkedTransport(Marked, httpx.HTTPTransport):
    pass


class MarkedTransport2(Marked, httpx2.HTTPTransport):
    pass


class SyncAndAsync(MarkedTransport, httpx.AsyncBaseTransport):
    """The transport that google-genai needs: it gives one to both its clients."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        whole = self.handle_request(
            httpx.Request(
                request.method, request.url, headers=request.headers, content=request.content
            )
        )
        return httpx.Response(whole.status_code, headers=whole.headers, content=whole.read())


OWN: dict[str, Callable[[], dict[str, Any]]] = {
    "openai": lambda: {"http_client": httpx2.Client(transport=MarkedTransport2())},
    "groq": lambda: {"http_client": httpx.Client(transport=MarkedTransport())},
    "google": lambda: {"client_args": {"transport": SyncAndAsync()}},
    "ollama": lambda: {"sync_client_kwargs": {"transport": MarkedTransport()}},
}


@pytest.mark.parametrize("brand", OWN)
def test_bind_covers_a_transport_of_the_user(
    chat: Any, ask: Any, tape: Path, server: ProviderServer, brand: str
) -> None:
    """The recording uses it, the replay does not. With it, google-genai does not use aiohttp."""
    model = bind(chat(brand, **OWN[brand]()))
    ways = ["invoke", "ainvoke"] if brand == "google" else ["invoke"]
    with tracefork.record(tape, ambient=False):
        recorded = [ask(model, way) for way in ways]
    asked = [request.header("via") for request in server.requests]
    assert asked == ["a transport of our own"] * len(ways)
    server.stop()
    with tracefork.replay(tape, ambient=False):
        assert [ask(model, way) for way in ways] == recorded
