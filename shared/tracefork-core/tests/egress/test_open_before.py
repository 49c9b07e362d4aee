"""Connections that were open before the session are guarded too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from tracefork_core import EgressError, record, replay
from tracefork_testkit import ProviderServer


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
def pool(server: ProviderServer) -> Iterator[urllib3.PoolManager]:
    """Keep a connection open, as an agent's client does from run to run."""
    with urllib3.PoolManager(retries=False) as pool:
        pool.request("GET", f"{server.url}/echo")
        yield pool


def test_sending_on_an_open_connection_is_refused_at_replay(
    empty: Path, server: ProviderServer, pool: urllib3.PoolManager
) -> None:
    """A urllib3 client may still hold a connection of the recording."""
    refused = rf"test_open_before\.py:\d+ tried to reach 127.0.0.1:{server.port} "
    with pytest.raises(EgressError, match=refused), replay(empty):
        pool.request("GET", f"{server.url}/echo")
    assert len(server.requests) == 1


def test_an_open_connection_is_counted_once_while_recording(
    tape: Path, server: ProviderServer, pool: urllib3.PoolManager
) -> None:
    """The receipt lists its host once, however many requests it carries."""
    with record(tape) as run:
        pool.request("POST", f"{server.url}/echo", body=b"one")
        pool.request("GET", f"{server.url}/echo")
    assert run.receipt is not None
    assert run.receipt.strays == [f"127.0.0.1:{server.port}"]


def test_an_open_connection_reaches_an_allowed_host(
    empty: Path, server: ProviderServer, pool: urllib3.PoolManager
) -> None:
    """`allow` lets the request through, and the connection counts as a socket."""
    with replay(empty, allow=["127.0.0.1"]) as run:
        assert pool.request("GET", f"{server.url}/echo").status == 200
    assert run.sockets == 1
