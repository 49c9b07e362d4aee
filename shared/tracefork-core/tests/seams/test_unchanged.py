"""Recording changes neither what the server gets nor what the agent sees."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import requests

from tracefork_core import record
from tracefork_testkit import Fault, Hold, ProviderServer, Reply

CHAT: dict[str, Any] = {
    "path": "/v1/chat/completions",
    "method": "POST",
    "json": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
}
STREAM: dict[str, Any] = {**CHAT, "json": {**CHAT["json"], "stream": True}}
LONG = Reply("one two three four five six seven eight")
UNFINISHED = Reply(LONG.text, hold=Hold(after_chunks=1))
POST: dict[str, Any] = {"path": "/echo", "method": "POST", "content": b"a body"}

SCENES: dict[str, tuple[list[dict[str, Any]], list[Reply | Fault]]] = {
    "a body": ([POST], []),
    "headers": ([{**POST, "headers": {"X-One": "1", "accept": "a/b", "User-Agent": "me"}}], []),
    "kept alive": ([POST] * 3, []),
    "gzip": ([{"path": "/gzip"}], []),
    "head": ([{"path": "/bytes/9", "method": "HEAD"}, POST], []),
    "no content": ([{"path": "/status/204"}, POST], []),
    "redirects": ([{**POST, "path": "/redirect?to=/redirect%3Fto%3D/echo"}], []),
    "cookies": ([{"path": "/set-cookie"}, POST], []),
    "stream": ([STREAM, POST], [LONG]),
    "abandoned": ([{**STREAM, "stop_after": 1}, POST], [UNFINISHED]),
    "refused": ([CHAT], [Fault(status=429)]),
    "reset before the head": ([CHAT, POST], [Fault(kind="reset")]),
    "reset in the body": ([STREAM], [Fault(kind="reset", after_chunks=1, reply=LONG)]),
    "truncated": ([CHAT, POST], [Fault(kind="truncate", after_chunks=1, reply=LONG)]),
    "no answer": ([{**CHAT, "timeout": 0.2}, POST], [Fault(kind="timeout")]),
}


@pytest.fixture
def port() -> int:
    """Return a port for two servers, one after the other."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        number: int = found.getsockname()[1]
    return number


def watched(library: Any) -> tuple[dict[str, Any], list[str]]:
    """Return options of a client that records events in a list, and that list."""
    noted: list[str] = []
    if library.lib is aiohttp:
        trace = aiohttp.TraceConfig()
        for name in dir(trace):
            if name.startswith("on_"):
                getattr(trace, name).append(noting(noted, name))
        return {"trace_configs": [trace]}, noted

    if library.lib is requests:
        return {"hooks": {"response": [lambda got, **_: noted.append(str(got.status_code))]}}, noted

    def sent(request: Any) -> None:
        noted.append(f"request {request.method} {request.url.path}")

    def received(response: Any) -> None:
        noted.append(f"response {response.status_code} {sorted(response.extensions)}")

    async def sent_async(request: Any) -> None:
        sent(request)

    async def received_async(response: Any) -> None:
        received(response)

    hooks = (sent_async, received_async) if library.is_async else (sent, received)
    return {"event_hooks": {"request": [hooks[0]], "response": [hooks[1]]}}, noted


def noting(noted: list[str], name: str) -> Callable[..., Any]:
    """Return a callback for aiohttp's traces."""

    async def note(session: Any, context: Any, given: Any) -> None:
        noted.append(f"{name} {getattr(given, 'chunk', None)!r} {type(session).__name__}")

    return note


@pytest.mark.parametrize("scene", SCENES)
def test_recording_changes_nothing(library: Any, port: int, tmp_path: Path, scene: str) -> None:
    """Requests, connections, answers, cookies, hooks and exceptions are the same with and without.

    Where data and its end come in one piece or two is up to the network: bodies are compared whole.
    """
    asks, script = SCENES[scene]
    runs = []
    for session in (nullcontext(), record(tmp_path / "run.tape")):
        options, noted = watched(library)
        with ProviderServer(script, port=port) as server, session:
            seen = library.all(server.url, *asks, **options)
            whole = [] if scene == "abandoned" else [one.body for one in seen]
            got = server.requests, server.connections
        for one in seen:
            one.chunks.clear()
        runs.append((got, seen, whole, noted))
    assert runs[1] == runs[0]
    assert len(runs[0][0][0]) >= len(asks)
