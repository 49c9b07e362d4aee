"""The fixtures are found by entry point: no conftest here imports them."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import httpx2
import pytest

from tracefork_testkit import (
    ClosedNetwork,
    NetworkClosedError,
    ProviderServer,
    closed_network,
    offline,
)


def test_every_use_of_the_network_is_refused_and_listed(no_network: ClosedNetwork) -> None:
    """Connections, look-ups and datagrams raise an error with the caller, for loopback too."""
    with socket.socket() as probe, pytest.raises(NetworkClosedError, match=Path(__file__).name):
        probe.connect(("127.0.0.1", 9))
    with pytest.raises(NetworkClosedError):
        socket.getaddrinfo("api.openai.com", 443)
    with pytest.raises(NetworkClosedError):
        socket.gethostbyname("api.openai.com")
    with socket.socket(type=socket.SOCK_DGRAM) as probe, pytest.raises(NetworkClosedError):
        probe.sendto(b"x", ("127.0.0.1", 9))
    assert [attempt.event for attempt in no_network.attempts] == [
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.sendto",
    ]


def test_other_threads_and_loops_are_refused(
    provider: ProviderServer, no_network: ClosedNetwork
) -> None:
    """An async client in another thread does not reach a running server."""
    errors: list[Exception] = []

    async def call() -> None:
        async with httpx2.AsyncClient() as client:
            await client.get(provider.url)

    def run() -> None:
        try:
            asyncio.run(call())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "NetworkClosedError" in repr(errors)
    assert provider.requests == []
    assert len(no_network.attempts) == 1


def test_unix_sockets_are_not_refused(no_network: ClosedNetwork) -> None:
    """They cannot reach another machine."""
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"x")
        assert right.recv(1) == b"x"
    assert no_network.attempts == []


def test_the_network_opens_again(provider: ProviderServer) -> None:
    """The negative control: the same call is refused inside the block and answered after it."""
    with closed_network(), pytest.raises(NetworkClosedError):
        httpx2.post(f"{provider.url}/echo", content=b"x")
    assert httpx2.post(f"{provider.url}/echo", content=b"x").content == b"x"
    assert len(provider.requests) == 1


def test_a_network_that_does_not_close_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the hook does nothing, closing the network fails instead of proving nothing."""
    monkeypatch.setattr(offline, "EVENTS", frozenset())
    with pytest.raises(AssertionError, match=r"127\.0\.0\.1"), closed_network():
        pass
