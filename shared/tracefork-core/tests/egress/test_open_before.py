"""A connection that is older than the session is a way out as well."""

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
    """Keep one connection open, as an agent's own client does from one run to the next."""
    with urllib3.PoolManager(retries=False) as pool:
        pool.request("GET", f"{server.url}/echo")
        yield pool


def test_what_is_sent_on_it_at_replay_is_refused(
    empty: Path, server: ProviderServer, pool: urllib3.PoolManager
) -> None:
    """A client of urllib3 that the recording has used, or what came before it, stays silent."""
    refused = rf"test_open_before\.py:\d+ tried to reach 127.0.0.1:{server.port} "
    with pytest.raises(EgressError, match=refused), replay(empty):
        pool.request("GET", f"{server.url}/echo")
    assert len(server.requests) == 1


def test_what_is_sent_on_it_is_counted_once_while_recording(
    tape: Path, server: ProviderServer, pool: urllib3.PoolManager
) -> None:
    """The receipt names where it goes, however many requests it carries."""
    with record(tape) as run:
        pool.request("POST", f"{server.url}/echo", body=b"one")
        pool.request("GET", f"{server.url}/echo")
    assert run.receipt is not None
    assert run.receipt.strays == [f"127.0.0.1:{server.port}"]


def test_an_allowed_host_is_reached_on_it(
    empty: Path, server: ProviderServer, pool: urllib3.PoolManager
) -> None:
    """`allow` lets it through, and it counts as a socket."""
    with replay(empty, allow=["127.0.0.1"]) as run:
        assert pool.request("GET", f"{server.url}/echo").status == 200
    assert run.sockets == 1
