"""What a websocket carries is on the tape, both ways and in order, and replays without a server."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio import client as on_loop
from websockets.sync import client as in_thread
from websockets.sync.server import ServerConnection

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_testkit.websocket import websocket_server

from .talkers import TALKERS, Seen, Step, Talker

BYTES = b"\xff\x00\r\n\n\nno text"


@pytest.fixture(params=TALKERS)
def talker(request: pytest.FixtureRequest) -> Talker:
    return TALKERS[request.param]


def answers(connection: ServerConnection) -> None:
    """Greet, and answer each message twice: as a text, and as bytes."""
    connection.ping()
    connection.send("welcome")
    for message in connection:
        match message:
            case "bye":
                connection.close(1001, "until tomorrow")
            case "fail":
                connection.close(1011, "out of order")
            case "cut":
                connection.socket.shutdown(socket.SHUT_RDWR)
            case str():
                connection.ping()
                connection.send(f"heard {message}")
                connection.send(BYTES)
            case _:
                connection.send(message)


def recorded_and_replayed(tape: Path, talker: Talker, steps: list[Step], **server: Any) -> Seen:
    """Return what an agent sees, which is the same without a session, recorded and replayed."""
    with websocket_server(answers, **server) as url:
        plain = talker(url, steps)
        with record(tape):
            assert talker(url, steps) == plain
    with replay(tape):
        assert talker(url, steps) == plain
    return plain


def test_messages_both_ways_replay_in_order(tape: Path, talker: Talker) -> None:
    """Texts and bytes, and nothing of the pings in between."""
    seen = recorded_and_replayed(tape, talker, [1, "a", 2, b"\x00\xfe", 1, "two\n\nlines\n", 2])
    assert seen == ["welcome", "heard a", BYTES, b"\x00\xfe", "heard two\n\nlines\n", BYTES]
    with Tape.open(tape) as recorded:
        exchanges = recorded.exchanges
        assert [(it.method, it.status) for it in exchanges] == [("GET", 101), *[("SEND", 200)] * 3]
        assert exchanges[1].request_body == b"a"
        assert exchanges[1].chunks[0] == b"data: heard a\n\n"
        assert all(it.end == "eof" for it in exchanges)


def test_binary_text_stays_binary(tape: Path, talker: Talker) -> None:
    """Gemini sends JSON as bytes: the tape shows it as text, and the agent gets bytes again."""
    seen = recorded_and_replayed(tape, talker, [1, b'{"a": 1}', 1])
    assert seen == ["welcome", b'{"a": 1}']
    with Tape.open(tape) as recorded:
        assert list(recorded.exchanges[1].chunks) == [b'event: binary\ndata: {"a": 1}\n\n']


@pytest.mark.parametrize(("word", "code"), [("bye", 1001), ("fail", 1011)])
def test_the_servers_close_code_and_reason_replay(
    tape: Path, talker: Talker, word: str, code: int
) -> None:
    """The agent gets the exception that it got, and finds the code where it looks for it."""
    *_, closed = recorded_and_replayed(tape, talker, [1, word, 1])
    assert code in closed
    with Tape.open(tape) as recorded:
        assert f"data: {code}".encode() in recorded.exchanges[-1].chunks[-1]


def test_a_cut_connection_replays(tape: Path, talker: Talker) -> None:
    """No close frame came, and the agent sees that again."""
    recorded_and_replayed(tape, talker, [1, "a", 2, "cut", 1])
    with Tape.open(tape) as recorded:
        assert recorded.exchanges[-1].end == "failed"


def test_a_refused_handshake_replays(tape: Path, talker: Talker) -> None:
    """The agent gets the status and the body of the response."""
    (error,) = recorded_and_replayed(tape, talker, [1], refused_with="no such key")
    assert 401 in error


def test_a_server_that_is_not_there_replays(tape: Path, talker: Talker) -> None:
    """The agent gets the error of the connection."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"ws://127.0.0.1:{free.getsockname()[1]}"
    with record(tape):
        refused = talker(url, [1])
    with replay(tape):
        assert talker(url, [1]) == refused
    assert refused[0][0]


def test_another_message_diverges(tape: Path, talker: Talker) -> None:
    """The negative control: one changed letter, and the replay says where."""
    with websocket_server(answers) as url, record(tape):
        talker(url, [1, "a", 2, "b", 2])
    with pytest.raises(DivergenceError, match="exchange 2"), replay(tape):
        talker(url, [1, "a", 2, "B", 2])


def test_a_text_is_not_the_same_as_its_bytes(tape: Path, talker: Talker) -> None:
    """The kind of a message is compared, too."""
    with websocket_server(answers) as url, record(tape):
        talker(url, [1, "a", 1])
    with pytest.raises(DivergenceError, match="exchange 1"), replay(tape):
        talker(url, [1, b"a", 1])


def test_the_key_of_a_handshake_is_not_on_the_tape(tape: Path, talker: Talker) -> None:
    """A handshake has headers, and they are masked as those of any request."""
    with websocket_server(answers) as url, record(tape):
        talker(url, [1])
    with Tape.open(tape) as recorded:
        names = {name.lower() for name, _ in recorded.exchanges[0].request_headers}
    assert "authorization" not in names
    assert b"sk-of-the-agent" not in tape.read_bytes()


def test_a_session_that_patches_nothing_leaves_websockets_alone(tape: Path, talker: Talker) -> None:
    """As it leaves requests of clients alone that were not bound."""
    with websocket_server(answers) as url, record(tape, ambient=False):
        assert talker(url, [1, "a", 2]) == ["welcome", "heard a", BYTES]
    with Tape.open(tape) as recorded:
        assert len(recorded.exchanges) == 0


def test_a_connection_of_a_thread_that_was_open_before_stays_live(tape: Path) -> None:
    """It belongs to no session, with every word that its methods take."""
    with websocket_server(answers) as url, in_thread.connect(url) as socket, record(tape):
        assert socket.recv(5) == "welcome"
        socket.send(b"a", text=True)
        assert [socket.recv(decode=False), next(socket.recv_streaming())] == [b"heard a", BYTES]
        socket.close(1000, "done")
    with Tape.open(tape) as recorded:
        assert len(recorded.exchanges) == 0


async def test_a_connection_of_a_task_that_was_open_before_stays_live(tape: Path) -> None:
    """The same on an event loop."""
    with websocket_server(answers) as url:
        async with on_loop.connect(url) as socket:
            with record(tape):
                assert await socket.recv() == "welcome"
                await socket.send(b"a", text=True)
                assert await socket.recv(decode=False) == b"heard a"
                assert [piece async for piece in socket.recv_streaming()] == [BYTES]
                await (await socket.ping())
                await socket.close(1000, "done")
                await socket.wait_closed()
    with Tape.open(tape) as recorded:
        assert len(recorded.exchanges) == 0


def test_a_secret_in_messages_is_not_on_the_tape(
    tape: Path, talker: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in what the agent sends nor in what comes back; the agent sees it live."""
    secret = "sk-proj-0123456789abcdefghijklmnop"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    with websocket_server(answers) as url, record(tape):
        assert talker(url, [1, f"key {secret}", 2])[1] == f"heard key {secret}"
    assert secret.encode() not in tape.read_bytes()
    with Tape.open(tape) as recorded:
        exchange = recorded.exchanges[1]
        for body in (exchange.request_body, exchange.response_body):
            assert secret.encode() not in body
            assert b"key " in body
    with replay(tape):
        talker(url, [1, f"key {secret}", 2])


async def test_a_connection_is_closed_after_its_session(tape: Path) -> None:
    """An open one goes on live; one that was never opened closes, too."""
    with websocket_server(answers) as url:
        with record(tape):
            socket = await on_loop.connect(url)
            assert await socket.recv() == "welcome"
        await socket.send("a")
        assert await socket.recv() == "heard a"
        await socket.close()
    with replay(tape):
        replayed = await on_loop.connect(url)
        assert await replayed.recv() == "welcome"
    await replayed.close()
    assert replayed.close_code == socket.close_code == 1000
    with Tape.open(tape) as recorded:
        assert len(recorded.exchanges) == 1
