"""record(offline=True) records a run that must not reach any server."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tracefork_core import EgressError, Tape, record, replay


class LocalModel(httpx2.BaseTransport):
    """A model in the agent's own process."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"said": request.read().decode()})


@pytest.fixture
def listening() -> Iterator[int]:
    """Listen on a port, and check that no connection arrived."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server.getsockname()[1]
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_local_model_is_recorded_offline(tape: Path) -> None:
    """No byte leaves the process, everything is on the tape, and it replays."""

    def run() -> object:
        with httpx2.Client(transport=LocalModel()) as client:
            return client.post("http://model.test/ask", content="hello").json()

    with record(tape, offline=True) as recording:
        first = run()
    assert recording.receipt is not None
    assert (recording.receipt.exchanges, recording.receipt.connections) == (1, 0)
    with replay(tape):
        assert run() == first == {"said": "hello"}


def test_offline_refuses_a_connection_at_the_line_that_makes_it(tape: Path, listening: int) -> None:
    """The error names this file, the address and the offline option; the block raises it again."""

    def agent() -> None:
        with pytest.raises(EgressError, match=r"test_offline\.py:\d+ tried to reach .*while"):
            with socket.socket() as door:
                door.connect(("127.0.0.1", listening))

    with pytest.raises(EgressError, match="while offline") as at_the_end:
        with record(tape, offline=True):
            agent()
    assert "offline=True" in str(at_the_end.value)
    with Tape.open(tape) as recorded:
        assert recorded.complete


# The standard library leaves the socket of a refused connection to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_offline_refuses_requests_that_cross_a_seam(tape: Path, listening: int) -> None:
    """Also if the agent swallows the error. Earlier exchanges stay on the tape."""

    def agent() -> None:
        with httpx2.Client(transport=LocalModel()) as client:
            client.post("http://model.test/ask", content="hello")
        with suppress(Exception), httpx2.Client(verify=False) as client:
            client.get(f"http://127.0.0.1:{listening}/")

    with pytest.raises(EgressError, match="while offline"), record(tape, offline=True):
        agent()
    with Tape.open(tape) as recorded:
        assert [exchange.end for exchange in recorded.exchanges] == ["eof", "failed"]
    gc.collect()


def test_offline_refuses_a_name_lookup(tape: Path) -> None:
    """A look-up tells the resolver a name."""
    with pytest.raises(EgressError, match=r"tried to look up model\.test while offline"):
        with record(tape, offline=True), suppress(OSError):
            socket.getaddrinfo("model.test", 443)


def test_a_python_child_is_offline_too(tape: Path, listening: int) -> None:
    """The block raises the error of its connection when it ends."""
    code = f"import socket; socket.create_connection(('127.0.0.1', {listening}))"
    with pytest.raises(EgressError, match=r"tried to reach .* while offline"):
        with record(tape, offline=True):
            child = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert b"while offline" in child.stderr


def test_without_offline_a_connection_is_counted(tape: Path) -> None:
    """The negative control: a recording allows connections and names them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with record(tape) as run, contextlib.closing(socket.create_connection(("127.0.0.1", port))):
            pass
    assert run.receipt is not None
    assert run.receipt.strays == [f"127.0.0.1:{port}"]
    assert "TRACEFORK_EGRESS" not in os.environ
