"""A server that echoes secrets, clients of every library, and a search through all files."""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, quote_plus, urlsplit

import aiohttp
import httpx
import httpx2
import msgspec
import pytest
from backports import zstd

from tracefork_core import Tape

KEY = "tk-7Jq0xWmB4c9LrYv2"
PASSWORD = 'pä"ss/w\\rd 9+z&'
OTHER_KEY = "another-key-of-another-length-55"
OTHER_PASSWORD = "n0 \\quot'es"


class Parrot(BaseHTTPRequestHandler):
    """Echoes the query or the body, in the way that the path names."""

    protocol_version = "HTTP/1.1"
    gate = threading.Event()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: value[0] for name, value in parse_qs(parts.query).items()}
        said = self.rfile.read(int(self.headers.get("content-length", 0)))
        said = said or bytes.fromhex(asked.get("hex", ""))
        manner = parts.path.split("/")[1]
        if manner == "split":
            at = int(asked["at"])
            self._chunks([said[:at], said[at:]])
        elif manner == "bytewise":
            self._chunks([said[i : i + 1] for i in range(len(said))])
        elif manner == "gzip":
            packed = gzip.compress(said)
            self._chunks([packed[:15], packed[15:]], ("content-encoding", "gzip"))
        elif manner == "hang":
            self._chunks([said], last=False)
            self.gate.wait(60)
        elif manner == "cut":
            self._head(200, "OK", ("content-length", str(len(said) + 9)))
            self.wfile.write(said)
            self.close_connection = True
        else:
            told = said.decode("latin-1") if manner == "head" else "nothing"
            self._head(200, told, ("x-told", told), ("content-length", str(len(said))))
            self.wfile.write(said)

    do_POST = do_GET

    def _head(self, status: int, reason: str, *headers: tuple[str, str]) -> None:
        self.send_response(status, reason)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _chunks(self, pieces: list[bytes], *headers: tuple[str, str], last: bool = True) -> None:
        self._head(200, "OK", ("transfer-encoding", "chunked"), *headers)
        for piece in filter(None, pieces):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        if last:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def parrot() -> Iterator[str]:
    """Return the URL of a server that echoes what it receives."""
    Parrot.gate.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Parrot) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        Parrot.gate.set()
        server.shutdown()


Send = Callable[..., Awaitable[list[bytes]]]
"""Sends a request (method, URL, content, headers) and returns the pieces of the answer's body."""


async def _with_httpx(lib: Any, method: str, url: str, **sent: Any) -> list[bytes]:
    with lib.Client(verify=False) as client, client.stream(method, url, **sent) as response:
        return list(response.iter_bytes())


async def _with_async_httpx(lib: Any, method: str, url: str, **sent: Any) -> list[bytes]:
    async with lib.AsyncClient(verify=False) as client:
        async with client.stream(method, url, **sent) as response:
            return [piece async for piece in response.aiter_bytes()]


async def _with_aiohttp(method: str, url: str, content: Any = None, **sent: Any) -> list[bytes]:
    async with aiohttp.ClientSession() as client:
        async with client.request(method, url, data=content, **sent) as response:
            return [piece async for piece, _ in response.content.iter_chunks() if piece]


SENDERS: dict[str, Send] = {
    "httpx": lambda *a, **k: _with_httpx(httpx, *a, **k),
    "httpx2": lambda *a, **k: _with_httpx(httpx2, *a, **k),
    "async httpx": lambda *a, **k: _with_async_httpx(httpx, *a, **k),
    "async httpx2": lambda *a, **k: _with_async_httpx(httpx2, *a, **k),
    "aiohttp": _with_aiohttp,
}


@pytest.fixture(params=list(SENDERS.values()), ids=list(SENDERS))
def send(request: pytest.FixtureRequest) -> Send:
    """Return a function that sends a request, with each library in turn."""
    found: Send = request.param
    return found


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set two secrets in the environment."""
    monkeypatch.setenv("SERVICE_API_KEY", KEY)
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)


def forms(value: str) -> dict[str, bytes]:
    """Return the spellings of a value that must not be stored, by name."""
    raw = value.encode()
    in_json = json.dumps(value)[1:-1]
    found = {
        "plain": raw,
        "json": in_json.encode(),
        "json, upper": in_json.replace("\\u00e4", "\\u00E4").encode(),
        "json, not ascii": json.dumps(value, ensure_ascii=False)[1:-1].encode(),
        "json, slashes": in_json.replace("/", "\\/").encode(),
        "json in json": json.dumps(in_json)[1:-1].encode(),
        "per cent": quote(value, safe="").encode(),
        "form": quote_plus(value).encode(),
        "hex": raw.hex().encode(),
        "hex, upper": raw.hex().upper().encode(),
    }
    for before in range(3):
        text = base64.b64encode(b"u" * before + raw + b"w" * 2)
        # The characters that hold nothing but bits of the value.
        core = text[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        found[f"base64 after {before}"] = core
        found[f"urlsafe base64 after {before}"] = core.replace(b"+", b"-").replace(b"/", b"_")
    return found


def everything_kept(folder: Path) -> bytes:
    """Return all bytes of all files, unpacked, and what a reader makes of tapes."""
    found = []
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            found += [data, *_unpacked(data)]
    for path in folder.rglob("*.tape"):
        found += _read(path)
    return b"\n".join(found)


def _unpacked(data: bytes) -> Iterator[bytes]:
    at = data.find(b"\x28\xb5\x2f\xfd")
    while at >= 0:
        unpacker = zstd.ZstdDecompressor()
        for start in range(at, len(data), 256):
            try:
                yield unpacker.decompress(data[start : start + 256])
            except (zstd.ZstdError, EOFError):
                break
        at = data.find(b"\x28\xb5\x2f\xfd", at + 4)


def _read(path: Path) -> Iterator[bytes]:
    with Tape.open(path) as tape:
        for exchange in tape.exchanges:
            yield exchange.canonical
            yield msgspec.json.encode(exchange.aside)
            yield exchange.request_body
            yield exchange.response_body
        yield msgspec.json.encode([tape.steps, tape.environment, tape.receipt])
