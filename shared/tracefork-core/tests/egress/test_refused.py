"""During replay no connection leaves the process, whatever library makes it."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import urllib3

from tracefork_core import EgressError, record, replay

from .conftest import Listener


def by_socket(listener: Listener) -> None:
    socket.create_connection(listener.address)


def by_urllib(listener: Listener) -> None:
    urllib.request.urlopen(listener.url)


def by_urllib3(listener: Listener) -> None:
    urllib3.request("GET", listener.url, timeout=5, retries=False)


def by_asyncio(listener: Listener) -> None:
    asyncio.run(asyncio.open_connection(*listener.address))


def by_datagram(listener: Listener) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"hello", listener.address)


def by_look_up(listener: Listener) -> None:
    socket.getaddrinfo("example.com", 443)


def by_old_look_up(listener: Listener) -> None:
    socket.gethostbyname("example.com")


def by_unix_socket(listener: Listener) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("/nowhere/postgres.sock")


def by_thread_pool(listener: Listener) -> None:
    with ThreadPoolExecutor() as pool:
        pool.submit(by_socket, listener).result()


DOORS = [
    by_socket,
    by_urllib,
    by_urllib3,
    by_asyncio,
    by_datagram,
    by_look_up,
    by_old_look_up,
    by_unix_socket,
    by_thread_pool,
]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_live_call_is_refused_and_its_caller_named(
    door: Callable[[Listener], None], empty: Path, listener: Listener
) -> None:
    """Each library's connection raises EgressError with file and line, and nothing arrives."""
    with pytest.raises(EgressError, match=r"test_refused\.py:\d+ tried to"), replay(empty):
        door(listener)
    assert listener.accepted == 0


def test_a_refusal_that_is_swallowed_is_raised_when_the_block_ends(
    empty: Path, listener: Listener
) -> None:
    """An agent that catches every exception does not hide the connection."""
    caught: list[Exception] = []

    def agent() -> None:
        try:
            socket.create_connection(listener.address)
        except Exception as error:
            caught.append(error)

    with pytest.raises(EgressError), replay(empty):
        agent()
    assert len(caught) == 1


def test_a_raw_thread_is_refused_and_the_block_raises(empty: Path, listener: Listener) -> None:
    """A thread without a context is refused too, and its error also ends the block."""
    failures: list[BaseException] = []

    def agent() -> None:
        try:
            socket.create_connection(listener.address)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=agent)

    def start() -> None:
        thread.start()
        thread.join()

    with pytest.raises(EgressError), replay(empty):
        start()
    assert [type(error) for error in failures] == [EgressError]
    assert listener.accepted == 0


@pytest.mark.parametrize("spelling", ["host", "host and port"])
def test_an_allowed_host_is_reached(spelling: str, empty: Path, listener: Listener) -> None:
    """`allow` takes a host or a single port of it: the negative control of refusing."""
    allowed = "127.0.0.1" if spelling == "host" else f"127.0.0.1:{listener.port}"
    with replay(empty, allow=[allowed]) as run:
        with urllib.request.urlopen(listener.url) as answer:
            assert answer.read() == b"ok"
    assert run.sockets == 1
    assert listener.accepted == 1


def test_another_port_than_the_allowed_one_is_refused(empty: Path, listener: Listener) -> None:
    """`allow` compares ports exactly."""
    allowed = f"127.0.0.1:{listener.port + 1}"
    with pytest.raises(EgressError), replay(empty, allow=[allowed]):
        socket.create_connection(listener.address)
    assert listener.accepted == 0


def test_a_local_server_may_be_started(empty: Path) -> None:
    """Listening sends nothing: a local server starts, with a look-up of its own name."""
    with replay(empty):
        HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler).server_close()
        socket.getaddrinfo("localhost", 80)


@pytest.mark.parametrize("host", ["api.smith.langchain.com", "o123.ingest.us.sentry.io"])
def test_telemetry_is_refused_without_failing_the_run(empty: Path, host: str) -> None:
    """A framework whose telemetry is refused does not make an exact replay fail."""
    with replay(empty), pytest.raises(EgressError):
        socket.getaddrinfo(host, 443)


@pytest.mark.parametrize("host", ["sentry.io", "ingest.sentry.io.example", "o1.sentry.io"])
def test_a_look_up_that_only_resembles_telemetry_fails_the_run(empty: Path, host: str) -> None:
    """A look-up of any other name ends the replay, even if the agent swallows the error."""
    with pytest.raises(EgressError, match=host), replay(empty), suppress(EgressError):
        socket.getaddrinfo(host, 443)


def test_after_the_block_the_network_is_open(empty: Path, listener: Listener) -> None:
    """The guard ends with its session."""
    with replay(empty):
        pass
    socket.create_connection(listener.address).close()
    with urllib.request.urlopen(listener.url) as answer:
        assert answer.read() == b"ok"


def test_a_recording_counts_connections_that_crossed_no_seam(
    tape: Path, listener: Listener
) -> None:
    """The receipt names connections that are not on the tape."""
    with record(tape) as run:
        by_urllib3(listener)
    assert run.receipt is not None
    assert run.receipt.connections == 1
    assert run.receipt.crossed == 0
    assert run.receipt.strays == [f"127.0.0.1:{listener.port}"]
