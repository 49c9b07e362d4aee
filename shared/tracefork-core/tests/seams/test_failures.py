"""An attempt that fails replays with the same class of exception and the same message."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape, UsageError, record, replay
from tracefork_core.seams.libraries import check_kind
from tracefork_testkit import Fault, ProviderServer, Reply

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
LONG = Reply("one two three four five six seven eight nine ten")

FAULTS = {
    "no answer": Fault(kind="timeout"),
    "reset before the head": Fault(kind="reset"),
    "reset in the body": Fault(kind="reset", after_chunks=2, reply=LONG),
    "truncated": Fault(kind="truncate", after_chunks=2, reply=LONG),
    "truncated at once": Fault(kind="truncate", after_chunks=0, reply=LONG),
    "misframed": Fault(kind="misframed", after_chunks=2, reply=LONG),
}


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Return a port on which no server listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_attempt_replays(
    library: Any, round_trip: Callable[..., Any], fault: str, stream: bool
) -> None:
    """The data before the break, the class of the exception and its message are the same."""
    with ProviderServer([FAULTS[fault]]) as server:
        ask = {
            "path": "/v1/chat/completions",
            "method": "POST",
            "json": {**ASK, "stream": stream},
            "timeout": {"no answer": 0.2, "misframed": 0.4}.get(fault, 30),
        }
        trip = round_trip(server, lambda url: library.all(url, ask))
    assert trip.recorded[0].error is not None
    assert trip.replayed == trip.recorded
    assert trip.tape[0][2] == "failed"


def test_a_refused_connection_replays(
    library: Any, closed_port: int, round_trip: Callable[..., Any]
) -> None:
    """The replay does not try to connect."""
    with ProviderServer() as server:
        trip = round_trip(server, lambda _: library.one(f"http://127.0.0.1:{closed_port}", "/"))
    assert trip.recorded.status is None
    assert "Connect" in trip.recorded.error[0]
    assert trip.replayed == trip.recorded


def test_an_unknown_host_replays(library: Any, tmp_path: Path) -> None:
    """The replay does not look the name up."""
    path = tmp_path / "name.tape"
    with record(path):
        recorded = library.one("http://nowhere.invalid", "/")
    with replay(path):
        assert library.one("http://nowhere.invalid", "/") == recorded
    assert "Connect" in recorded.error[0]


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
def test_the_library_refuses_an_invalid_port(name: str, tmp_path: Path) -> None:
    """It raises as it does without a session, and that replays."""
    lib, path = import_module(name), tmp_path / "port.tape"

    def ask() -> str:
        with pytest.raises(lib.ConnectError) as raised:
            lib.get("http://127.0.0.1:99999/")
        return str(raised.value)

    plain = ask()
    with record(path):
        assert ask() == plain
    with replay(path):
        assert ask() == plain


def test_an_error_status_is_an_answer(library: Any, round_trip: Callable[..., Any]) -> None:
    """429 and 500, with headers and bodies, are answers and not failures."""
    faults = [Fault(status=429, headers={"retry-after": "7"}), Fault(status=500)]
    with ProviderServer(faults) as server:
        ask = {"path": "/v1/chat/completions", "method": "POST", "json": ASK}
        trip = round_trip(server, lambda url: library.all(url, ask, ask))
    assert [seen.status for seen in trip.replayed] == [429, 500]
    assert trip.replayed[0].header("retry-after") == "7"
    assert trip.replayed == trip.recorded


def test_a_class_named_by_a_hostile_tape_is_never_looked_up(
    library: Any, closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name outside the table becomes the library's plain error."""
    path, url = tmp_path / "strange.tape", f"http://127.0.0.1:{closed_port}"
    with record(path):
        library.one(url, "/")
    with Tape.open(path) as tape:
        failure = tape.exchanges[0].failure
    assert failure is not None
    strange = type(failure)("os.system", "touch pwned")
    monkeypatch.setattr("tracefork_core.tape.reader.Exchange.failure", strange)
    with replay(path):
        replayed = library.one(url, "/")
    assert replayed.error in [
        ("TransportError", "os.system: touch pwned"),
        ("ClientError", "os.system: touch pwned"),
        ("RequestException", "os.system: touch pwned"),
    ]


@pytest.mark.parametrize(
    ("seam", "kind"),
    [
        ("httpx", "ReadTimeout"),
        ("httpx2", "ConnectError"),
        ("aiohttp", "ServerDisconnectedError"),
        ("requests", "ConnectionError(ProtocolError)"),
    ],
)
def test_a_fork_accepts_only_exceptions_of_the_library(seam: str, kind: str) -> None:
    """A tool may raise any exception."""
    check_kind(seam, kind)
    check_kind("tool", "Banana")
    with pytest.raises(UsageError):
        check_kind(seam, "Banana")


class Broken:
    """A transport that fails with an exception of Python's own."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, request: Any) -> Any:
        raise self.error


@pytest.mark.parametrize("module", ["httpx", "httpx2"])
@pytest.mark.parametrize("error", [RuntimeError("Event loop is closed"), OSError("gone")])
def test_an_exception_of_python_keeps_its_class(
    tmp_path: Path, module: str, error: Exception
) -> None:
    """SDKs translate exceptions of their HTTP library, and no others."""
    lib = import_module(module)
    raised: list[tuple[type, str]] = []
    for scope in (record, replay):
        with (
            scope(tmp_path / "run.tape"),
            lib.Client(transport=lib.MockTransport(Broken(error))) as client,
            pytest.raises(type(error)) as came,
        ):
            client.get("http://127.0.0.1:1/")
        raised.append((type(came.value), str(came.value)))
    assert raised == [(type(error), str(error))] * 2
