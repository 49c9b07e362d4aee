"""A format reads and changes what a transport of an adapter's own recorded."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2
import pytest

import tracefork_core as tracefork
from tracefork_core import UsageError
from tracefork_core.adapters import Failure, Head, Request, crossing_seam, session_here
from tracefork_core.adapters.formats import Answer, Asked, ToolUse, Wanted
from tracefork_core.providers import formats, tool_use
from tracefork_testkit import ProviderServer


class Shouting:
    """The format of a server that takes a line and returns it in capitals."""

    def reads(self, method: str, url: str) -> bool:
        return url.startswith("shout:")

    def decode(self, asked: Asked, answered: Answer | None) -> ToolUse:
        said = json.loads(asked.body)
        return ToolUse("say", said, "shouter", answered.body.decode() if answered else None)

    def encode(self, asked: Asked, wanted: Wanted, recorded: Answer | None) -> Answer:
        if wanted.text is None:
            raise UsageError("a shouter is answered with a text: --text")
        if wanted.error is not None:
            return Answer(wanted.status or 0, (), (f"{wanted.error}: {wanted.text}".encode(),))
        return Answer(200, (), (wanted.text.upper().encode(),))

    def reword(self, asked: Asked, changes: Mapping[str, object]) -> tuple[str, bytes]:
        return asked.url, json.dumps({"text": changes["prompt"]}).encode()

    def status_of(self, error: str) -> int | None:
        return 400 if error == "HoarseError" else None


class OverHttp(Shouting):
    """The same at a path of HTTP, which any client may ask."""

    def reads(self, method: str, url: str) -> bool:
        return url.endswith("/echo/shout")


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the format be the one that is installed, as its entry point would."""
    monkeypatch.setattr(formats, "_formats", lambda: (Shouting(), OverHttp()))
    formats.format_of.cache_clear()
    yield
    formats.format_of.cache_clear()


@pytest.fixture
def shouter() -> Iterator[tuple[str, int]]:
    """Serve one line per connection, on a real socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(connection.recv(100).upper())

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()
        server.shutdown(socket.SHUT_RDWR)


def say(text: str, address: tuple[str, int]) -> str:
    """Ask the server as an adapter's seam would."""
    session = session_here()
    asked = Request("SAY", "shout:out", (), json.dumps({"text": text}).encode(), "shout", "read")
    answer = session.open(asked) if session else None
    if answer is not None and not answer.is_live:
        head = answer.receive_head()
        assert not isinstance(head, Failure)
        pieces = []
        while isinstance(piece := answer.receive_chunk(), bytes):
            pieces.append(piece)
        return b"".join(pieces).decode()
    sends = answer.sends if answer else None
    with crossing_seam(), socket.create_connection(address) as connection:
        connection.sendall(json.loads((sends or asked).body)["text"].encode())
        heard = connection.recv(100)
    if answer is not None:
        answer.head(Head(200, "", ()))
        answer.chunk(heard)
        answer.end()
    return heard.decode()


def test_a_format_reads_what_its_transport_recorded(shouter: tuple[str, int], tape: Path) -> None:
    """The replay makes no connection: the server's port is closed to it."""
    with tracefork.record(tape):
        assert say("hello", shouter) == "HELLO"
    with tracefork.replay(tape):
        assert say("hello", ("127.0.0.1", 1)) == "HELLO"
    with tracefork.Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        assert tool_use(exchange) == ToolUse("say", {"text": "hello"}, "shouter", "HELLO")


def test_a_fork_answers_and_asks_in_the_words_of_the_format(
    shouter: tuple[str, int], tape: Path, tmp_path: Path
) -> None:
    """A text becomes an answer of the transport, and an edit a request that it sends."""
    with tracefork.record(tape):
        say("hello", shouter)
    with tracefork.fork(tape, at=0, replace="bye", to=tmp_path / "given.tape"):
        assert say("hello", ("127.0.0.1", 1)) == "BYE"
    with tracefork.fork(tape, at=0, replace=tracefork.Edit(prompt="hi"), to=tmp_path / "live.tape"):
        assert say("hello", shouter) == "HI"


def test_a_format_says_what_it_cannot_answer(shouter: tuple[str, int], tape: Path) -> None:
    """The message is the adapter's own."""
    with tracefork.record(tape):
        say("hello", shouter)
    with (
        pytest.raises(UsageError, match="a shouter is answered with a text"),
        tracefork.fork(tape, at=0, replace=tracefork.Replace(document={"a": 1})),
    ):
        say("hello", shouter)


def test_a_fork_fails_with_an_error_that_the_service_names(
    shouter: tuple[str, int], tape: Path, tmp_path: Path
) -> None:
    """A name that the format does not know is an exception of the library, as ever."""
    with tracefork.record(tape):
        say("hello", shouter)
    fails = tracefork.Fail(kind="HoarseError", message="no voice")
    with tracefork.fork(tape, at=0, replace=fails, to=tmp_path / "hoarse.tape"):
        assert say("hello", ("127.0.0.1", 1)) == "HoarseError: no voice"
    with tracefork.Tape.open(tmp_path / "hoarse.tape") as branch:
        assert branch.exchanges[0].status == 400
    fails = tracefork.Fail(kind="ReadTimeout")
    with (
        pytest.raises(AssertionError),
        tracefork.fork(tape, at=0, replace=fails, to=tmp_path / "late.tape"),
    ):
        say("hello", ("127.0.0.1", 1))


def test_a_client_over_http_gets_the_error_of_the_service(tape: Path, tmp_path: Path) -> None:
    """Its library has no exception of that name, and needs none."""
    with ProviderServer() as server, httpx2.Client() as client:

        def run() -> httpx2.Response:
            return client.post(f"{server.url}/echo/shout", json={"text": "hello"})

        with tracefork.record(tape):
            run()
        fails = tracefork.Fail(kind="HoarseError", message="no voice")
        with tracefork.fork(tape, at=0, replace=fails, to=tmp_path / "hoarse.tape"):
            answer = run()
        assert (answer.status_code, answer.text) == (400, "HoarseError: no voice")
        with (
            pytest.raises(UsageError, match="httpx2 has no exception DeafError"),
            tracefork.fork(tape, at=0, replace=tracefork.Fail(kind="DeafError")),
        ):
            run()


def test_a_changed_request_keeps_the_signature_of_its_client(tape: Path, tmp_path: Path) -> None:
    """The SDK signed what it wanted to send, and tracefork has no key to sign with."""
    with ProviderServer() as server, httpx2.Client() as client:
        signed = {"authorization": "AWS4-HMAC-SHA256 Signature=of-hello"}

        def run() -> None:
            client.post(f"{server.url}/echo/shout", json={"text": "hello"}, headers=signed)

        with tracefork.record(tape):
            run()
        edit = tracefork.Edit(prompt="hi")
        with tracefork.fork(tape, at=0, replace=edit, to=tmp_path / "b.tape", writes="allow"):
            run()
        sent = server.requests[-1]
        assert sent.json() == {"text": "hi"}
        assert sent.header("authorization") == signed["authorization"]


def test_show_prints_the_call_of_a_tool(
    shouter: tuple[str, int], tape: Path, tmp_path: Path
) -> None:
    """The command line finds a format by its entry point, of an installed distribution."""
    with tracefork.record(tape):
        say("hello", shouter)
    folder = tmp_path / "installed" / "shout-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: shout\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[tracefork.formats]\nshout = shout_format:FORMAT\n")
    (folder.parent / "shout_format.py").write_text(
        "import json\n"
        "from tracefork_core.adapters.formats import ToolUse\n"
        "class FORMAT:\n"
        "    reads = staticmethod(lambda method, url: url.startswith('shout:'))\n"
        "    decode = staticmethod(lambda asked, answered: ToolUse(\n"
        "        'say', json.loads(asked.body), 'shouter', answered.body.decode()))\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(folder.parent)!r}); "
        "from tracefork_core.cli.main import main; main()"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, "show", str(tape)], capture_output=True, text=True, check=False
    )
    assert 'shouter ▸ say {"text":"hello"}'[:24] in shown.stdout, shown.stderr
    assert "→ HELLO" in shown.stdout
