"""The recorders behind one interface: the plain client, tracefork-core, and others in `peers`.

A recorder is a context in which clients are made. All clients are httpx2 clients with only the
settings that a recorder needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import httpx2


class Clients(Protocol):
    """Make clients. Without a transport they reach the network."""

    def sync(self, transport: httpx2.BaseTransport | None = None) -> httpx2.Client: ...

    def asynchronous(self) -> httpx2.AsyncClient: ...


class Recorder(Protocol):
    """Record to a path and replay from it; leaving the context saves."""

    def record(self, path: Path) -> AbstractContextManager[Clients]: ...

    def replay(self, path: Path) -> AbstractContextManager[Clients]: ...


class PlainClients:
    """Ordinary clients."""

    def sync(self, transport: httpx2.BaseTransport | None = None) -> httpx2.Client:
        import httpx2

        return httpx2.Client(transport=transport)

    def asynchronous(self) -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient()


class Plain:
    """No recorder. A replay is a client on a mock transport: the client's own limit."""

    @contextmanager
    def record(self, path: Path) -> Iterator[Clients]:
        yield PlainClients()

    @contextmanager
    def replay(self, path: Path) -> Iterator[Clients]:
        yield _MockedClients()


class _MockedClients(PlainClients):
    def sync(self, transport: httpx2.BaseTransport | None = None) -> httpx2.Client:
        import httpx2

        body = b'{"choices": [], "pad": "%s"}' % (b"x" * 900)

        def answer(request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, headers={"content-type": "application/json"}, content=body)

        return httpx2.Client(transport=httpx2.MockTransport(answer))


class Core:
    """tracefork-core with its defaults: ambient, clock and guard on, durable."""

    @contextmanager
    def record(self, path: Path) -> Iterator[Clients]:
        import tracefork_core

        with tracefork_core.record(path):
            yield PlainClients()

    @contextmanager
    def replay(self, path: Path) -> Iterator[Clients]:
        import tracefork_core

        with tracefork_core.replay(path):
            yield PlainClients()


PLAIN = "plain client"
CORE = "tracefork-core"
OURS: dict[str, Callable[[], Recorder]] = {PLAIN: Plain, CORE: Core}
