"""One interface to every HTTP library: send requests, and return all that an agent sees of them."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from tracefork_core import Tape, record, replay
from tracefork_testkit import ProviderServer

from .shop import SHOP

collect_ignore = [] if find_spec("trio") else ["test_trio.py"]
"""Which runs in an environment of its own: see tox.ini."""
CONTEXT = ssl.create_default_context()
"""One for all: to build it loads every root certificate."""


@dataclass
class Seen:
    """Everything that an agent can see of one request."""

    status: int | None = None
    reason: str | None = None
    version: str | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)
    error: tuple[str, str] | None = None
    url: str | None = None
    history: list[int] = field(default_factory=list)
    cookies: dict[str, str] = field(default_factory=dict)
    timed: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    def header(self, name: str) -> str | None:
        found = (v for n, v in self.headers if n.decode().lower() == name)
        return next((value.decode() for value in found), None)


class Library(ABC):
    """One way to send requests. `asks` are keyword arguments of `ask`, for one client."""

    is_async = True

    def __init__(self, lib: ModuleType) -> None:
        self.lib = lib

    @abstractmethod
    def all(self, url: str, *asks: dict[str, Any], **client: Any) -> list[Seen]:
        """Send requests one after the other."""

    def one(self, url: str, path: str, **ask: Any) -> Seen:
        """Send one request."""
        return self.all(url, {"path": path, **ask})[0]


class Sync(Library):
    is_async = False

    def all(self, url: str, *asks: dict[str, Any], **client: Any) -> list[Seen]:
        options = {"verify": CONTEXT, "follow_redirects": True, **client}
        with self.lib.Client(**options) as opened:
            return [self.ask(opened, url, **ask) for ask in asks]

    def ask(
        self,
        client: Any,
        url: str,
        path: str,
        method: str = "GET",
        stop_after: int | None = None,
        timeout: float = 30,
        decoded: bool = False,
        after_chunk: Callable[[Seen], object] = bool,
        **options: Any,
    ) -> Seen:
        seen = Seen()
        try:
            with client.stream(method, url + path, timeout=timeout, **options) as response:
                note_head(seen, response)
                for chunk in response.iter_bytes() if decoded else response.iter_raw():
                    seen.chunks.append(chunk)
                    after_chunk(seen)
                    if len(seen.chunks) == stop_after:
                        break
            seen.timed = not decoded and response.elapsed.total_seconds() > 0
        except self.lib.TransportError as error:
            seen.error = type(error).__name__, str(error)
        return seen


class Async(Library):
    def all(self, url: str, *asks: dict[str, Any], **client: Any) -> list[Seen]:
        async def send() -> list[Seen]:
            options = {"verify": CONTEXT, "follow_redirects": True, **client}
            async with self.lib.AsyncClient(**options) as opened:
                return [await self.ask(opened, url, **ask) for ask in asks]

        return asyncio.run(send())

    async def ask(
        self,
        client: Any,
        url: str,
        path: str,
        method: str = "GET",
        stop_after: int | None = None,
        timeout: float = 30,
        decoded: bool = False,
        after_chunk: Callable[[Seen], object] = bool,
        **options: Any,
    ) -> Seen:
        seen = Seen()
        try:
            async with client.stream(method, url + path, timeout=timeout, **options) as response:
                note_head(seen, response)
                async for chunk in response.aiter_bytes() if decoded else response.aiter_raw():
                    seen.chunks.append(chunk)
                    after_chunk(seen)
                    if len(seen.chunks) == stop_after:
                        break
            seen.timed = not decoded and response.elapsed.total_seconds() > 0
        except self.lib.TransportError as error:
            seen.error = type(error).__name__, str(error)
        return seen


class Aiohttp(Library):
    def all(self, url: str, *asks: dict[str, Any], **client: Any) -> list[Seen]:
        async def send() -> list[Seen]:
            # A jar of its own kind: the usual one keeps no cookies of hosts without a name.
            options = {"cookie_jar": aiohttp.CookieJar(unsafe=True), **client}
            async with aiohttp.ClientSession(**options) as opened:
                return [await self.ask(opened, url, **ask) for ask in asks]

        return asyncio.run(send())

    async def ask(
        self,
        client: Any,
        url: str,
        path: str,
        method: str = "GET",
        stop_after: int | None = None,
        timeout: float = 30,
        content: Any = None,
        after_chunk: Callable[[Seen], object] = bool,
        **options: Any,
    ) -> Seen:
        seen = Seen()
        # It may wait for ever where framing is broken: only the limit on everything ends that.
        options["timeout"] = aiohttp.ClientTimeout(4 * timeout, None, timeout, timeout)
        if content is not None:
            options["data"] = content
        try:
            async with client.request(method, url + path, **options) as response:
                seen.status, seen.reason = response.status, response.reason
                seen.version = "HTTP/{}.{}".format(*response.version)
                seen.headers = list(response.raw_headers)
                seen.url = str(response.url)
                seen.history = [past.status for past in response.history]
                seen.cookies = {name: morsel.value for name, morsel in response.cookies.items()}
                async for chunk in response.content.iter_any():
                    seen.chunks.append(chunk)
                    after_chunk(seen)
                    if len(seen.chunks) == stop_after:
                        break
        except (aiohttp.ClientError, TimeoutError) as error:
            seen.error = type(error).__name__, str(error)
        return seen


class Requests(Library):
    is_async = False

    def all(self, url: str, *asks: dict[str, Any], **client: Any) -> list[Seen]:
        with requests.Session() as opened:
            opened.trust_env = False
            for name, value in client.items():
                setattr(opened, name, value)
            return [self.ask(opened, url, **ask) for ask in asks]

    def ask(
        self,
        client: Any,
        url: str,
        path: str,
        method: str = "GET",
        stop_after: int | None = None,
        timeout: float = 30,
        content: Any = None,
        after_chunk: Callable[[Seen], object] = bool,
        **options: Any,
    ) -> Seen:
        seen = Seen()
        if content is not None:
            options["data"] = content
        try:
            asked = client.request(method, url + path, timeout=timeout, stream=True, **options)
            with asked as response:
                seen.status, seen.reason = response.status_code, response.reason
                seen.version = str(response.raw.version)
                seen.headers = [
                    (name.encode("latin-1"), value.encode("latin-1"))
                    for name, value in response.raw.headers.items()
                ]
                seen.url = response.url
                seen.history = [past.status_code for past in response.history]
                seen.cookies = response.cookies.get_dict()
                for chunk in response.raw.stream(2**20, decode_content=False):
                    seen.chunks.append(chunk)
                    after_chunk(seen)
                    if len(seen.chunks) == stop_after:
                        break
            seen.timed = response.elapsed.total_seconds() > 0
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            seen.error = type(error).__name__, str(error)
        return seen


def note_head(seen: Seen, response: Any) -> None:
    """Record what httpx and httpx2 expose of a response before its body."""
    seen.status, seen.reason = response.status_code, response.reason_phrase
    seen.version = response.http_version
    seen.headers = list(response.headers.raw)
    seen.url = str(response.url)
    seen.history = [past.status_code for past in response.history]
    seen.cookies = dict(response.cookies)


LIBRARIES: dict[str, Library] = {
    "httpx": Sync(httpx),
    "httpx-async": Async(httpx),
    "httpx2": Sync(httpx2),
    "httpx2-async": Async(httpx2),
    "aiohttp": Aiohttp(aiohttp),
    "requests": Requests(requests),
}


@pytest.fixture(params=list(LIBRARIES.values()), ids=list(LIBRARIES))
def library(request: pytest.FixtureRequest) -> Library:
    """Return each library in turn."""
    found: Library = request.param
    return found


@pytest.fixture
def libraries() -> dict[str, Library]:
    """All libraries by name."""
    return LIBRARIES


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """Serve the default script; `stop` leaves its `url` unreachable."""
    with ProviderServer() as server:
        yield server


class Wire:
    """A server that sends exactly these bytes: one reply per request; None hangs up.

    It hangs up after the last reply. `heard` holds the raw requests.
    """

    def __init__(self, replies: Sequence[bytes | None]) -> None:
        self._replies = deque(replies)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.heard: list[bytes] = []
        self.url = "http://{}:{}".format(*self._listener.getsockname())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening."""
        self._listener.close()

    def _serve(self) -> None:
        while self._replies:
            connection, _ = self._listener.accept()
            with connection:
                while self._replies and (request := connection.recv(65536)):
                    self.heard.append(request)
                    if (reply := self._replies.popleft()) is None:
                        break
                    connection.sendall(reply)


@pytest.fixture
def wire() -> Iterator[Callable[..., Wire]]:
    """Return a function that starts a server which answers with exactly these bytes."""
    with ExitStack() as stack:
        yield lambda *replies: stack.enter_context(Wire(replies))


@dataclass
class Trip:
    """The results of a recording and of its replay, and the tape between them."""

    path: Path
    recorded: Any
    replayed: Any

    @property
    def tape(self) -> list[tuple[str, int | None, str]]:
        """Each exchange as method, status and how it ended."""
        with Tape.open(self.path) as tape:
            return [(exchange.method, exchange.status, exchange.end) for exchange in tape.exchanges]


@pytest.fixture
def round_trip(tmp_path: Path) -> Callable[..., Trip]:
    """Record what a function does with a server, stop the server, and replay it."""

    def run(server: ProviderServer | Wire, act: Callable[[str], Any], **options: Any) -> Trip:
        path, url = tmp_path / "trip.tape", server.url
        with record(path, **options) as recording:
            recorded = act(url)
        assert recording.receipt is not None
        assert recording.receipt.strays == []
        server.stop()
        with replay(path, **options):
            replayed = act(url)
        return Trip(path, recorded, replayed)

    return run


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], ModuleType]]:
    """Return a function that imports a module of tools."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "user.py").write_text("from shop import plain, Bank\n")
    monkeypatch.syspath_prepend(tmp_path)

    def load() -> ModuleType:
        return __import__("shop")

    yield load
    for name in ("shop", "user"):
        sys.modules.pop(name, None)
