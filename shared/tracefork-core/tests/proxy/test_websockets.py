"""Websockets pass the proxy both ways, and replay without their server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection
from websockets.typing import Origin

from tracefork_testkit.websocket import websocket_server

from ..cli.conftest import Shell
from .conftest import Running, exchanges, standalone

KEY = "sk-proj-0123456789abcdefghijklmnop"
ASKED = ["one", "two", "bye"]


def answers(connection: ServerConnection) -> None:
    """Greet, answer with a text and with bytes, and close on request."""
    connection.send("welcome")
    for message in connection:
        if message == "bye":
            connection.close(4001, "until tomorrow")
        elif message == "cut":
            connection.socket.shutdown(socket.SHUT_RDWR)
        else:
            connection.send(f"heard {message!s}")
            connection.send(b"\x00\xff")


@pytest.fixture
def upstream(shell: Shell) -> Iterator[str]:
    """Serve websockets, and name the server to the proxy."""
    with websocket_server(answers) as url:
        shell.environment["OPENAI_BASE_URL"] = url.replace("ws", "http")
        yield url


def realtime_at(proxy: Running) -> str:
    """Return the address of the API for a program behind the proxy."""
    return f"{proxy.variables['OPENAI_BASE_URL'].replace('http', 'ws')}/realtime"


def talk(proxy: Running, asked: list[str]) -> list[object]:
    """Do what a program does through a proxy, and return what it sees."""
    seen: list[object] = []
    url = f"{realtime_at(proxy)}?model=m"
    with connect(url, additional_headers={"authorization": f"Bearer {KEY}"}) as talking:
        try:
            seen.append(talking.recv())
            for message in asked:
                talking.send(message)
                seen += [talking.recv(), talking.recv()]
        except ConnectionClosed as closed:
            seen.append(str(closed))
    return seen


def test_a_websocket_is_recorded_and_replays(shell: Shell, upstream: str) -> None:
    """Messages, their kinds and the close code are equal; the key is on no tape."""
    seen = []
    for verb in ("record", "replay"):
        with standalone(shell, verb, "run.tape") as proxy:
            seen.append(talk(proxy, ASKED))
            assert proxy.ended()[0] == 0
    welcome, *rest, closed = seen[0]
    assert (welcome, rest) == ("welcome", ["heard one", b"\x00\xff", "heard two", b"\x00\xff"])
    assert "4001" in str(closed)
    assert seen[1] == seen[0]
    held = exchanges(shell.folder / "run.tape")
    assert [it.method for it in held] == ["GET", "SEND", "SEND", "SEND"]
    assert KEY.encode() not in (shell.folder / "run.tape").read_bytes()


def test_another_message_diverges(shell: Shell, upstream: str) -> None:
    """The negative control: the program is told why, and the replay fails."""
    with standalone(shell, "record", "run.tape") as proxy:
        talk(proxy, ASKED)
        proxy.ended()
    with standalone(shell, "replay", "run.tape") as proxy:
        seen = talk(proxy, ["one", "TWO", "bye"])
        status = proxy.ended()[0]
    assert (seen[1], status) == ("heard one", 1)
    assert "1011" in str(seen[-1])


def test_a_cut_connection_closes_with_a_reason(shell: Shell, upstream: str) -> None:
    """A proxy cannot cut one websocket, so the close frame says what happened; also replayed."""
    seen = []
    for verb in ("record", "replay"):
        with standalone(shell, verb, "run.tape") as proxy:
            seen.append(talk(proxy, ["one", "cut"]))
            assert proxy.ended()[0] == 0
    assert seen[1] == seen[0]
    assert "was cut" in str(seen[0][-1])


def test_a_refused_handshake_passes(shell: Shell) -> None:
    """The program gets the status and the body of the upstream server, live and replayed."""
    seen = []
    with websocket_server(answers, refused_with="no such key") as url:
        shell.environment["OPENAI_BASE_URL"] = url.replace("ws", "http")
        for verb in ("record", "replay"):
            with standalone(shell, verb, "run.tape") as proxy:
                with pytest.raises(InvalidStatus) as refused:
                    talk(proxy, [])
                seen.append((refused.value.response.status_code, refused.value.response.body))
                proxy.ended()
    assert seen == [(401, b"no such key")] * 2


def test_a_page_of_another_origin_is_refused(shell: Shell, upstream: str) -> None:
    """As for requests: a page in a browser must not use the proxy."""
    with standalone(shell, "record", "run.tape") as proxy:
        url = realtime_at(proxy)
        with (
            pytest.raises(InvalidStatus) as refused,
            connect(url, origin=Origin("http://evil.example")),
        ):
            pass
        proxy.ended()
    assert refused.value.response.status_code == 403
    assert "evil.example" in json.loads(refused.value.response.body)["message"]
    assert exchanges(shell.folder / "run.tape") == []
