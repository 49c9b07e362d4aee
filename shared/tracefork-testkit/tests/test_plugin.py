"""The fixtures, found by entry point: no conftest here imports them."""

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


def test_every_door_is_refused_and_listed(no_network: ClosedNetwork) -> None:
    """Connects, names and datagrams raise, loopback too, and the message names the caller."""
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
    """An async client in a thread of its own does not reach a server that is up."""
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


def test_unix_sockets_stay_open(no_network: ClosedNetwork) -> None:
    """What cannot leave the machine is not refused."""
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
    """With a hook that hears nothing, closing fails instead of proving nothing."""
    monkeypatch.setattr(offline, "EVENTS", frozenset())
    with pytest.raises(AssertionError, match="yet a connect to"), closed_network():
        pass
