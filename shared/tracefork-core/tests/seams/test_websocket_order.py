"""Sending in one task or thread and reading in another replays in the recorded order."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.asyncio import client as on_loop
from websockets.exceptions import ConnectionClosed
from websockets.sync import client as in_thread
from websockets.sync.server import ServerConnection

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_testkit.websocket import websocket_server


def echoes(connection: ServerConnection) -> None:
    """Answer each message with two, and close at the third."""
    for count, message in enumerate(map(str, connection), 1):
        connection.send(f"first to {message}")
        connection.send(f"second to {message}")
        if count == 3:
            return


async def at_once_on_loop(url: str, pauses: list[float]) -> list[str]:
    """Send in this task and read in another, and note both."""
    noted: list[str] = []
    async with on_loop.connect(url) as socket:

        async def read() -> None:
            async for message in socket:
                noted.append(str(message))  # noqa: PERF401 - as an agent does

        reading = asyncio.create_task(read())
        for count, pause in enumerate(pauses):
            await socket.send(str(count))
            noted.append(f"sent {count}")
            await asyncio.sleep(pause)
        await reading
    return noted


def at_once_in_threads(url: str, pauses: list[float]) -> list[str]:
    noted: list[str] = []
    with in_thread.connect(url) as socket:

        def read() -> None:
            with suppress(ConnectionClosed):
                noted.extend(map(str, socket))

        reading = threading.Thread(target=read)
        reading.start()
        for count, _ in enumerate(pauses):
            socket.send(str(count))
            noted.append(f"sent {count}")
        reading.join()
    return noted


@pytest.mark.parametrize("pauses", [[0, 0, 0], [0.02, 0, 0.02]])
async def test_tasks_interleave_as_recorded(tape: Path, pauses: list[float]) -> None:
    """The agent's notes are the same each time, without a server."""
    with websocket_server(echoes) as url, record(tape):
        recorded = await at_once_on_loop(url, pauses)
    assert len(recorded) == 9
    for _ in range(3):
        with replay(tape):
            assert await at_once_on_loop("ws://127.0.0.1:40000", pauses) == recorded


def test_threads_replay_every_message(tape: Path) -> None:
    """A thread that sends and one that reads do not wait for one another for ever."""
    with websocket_server(echoes) as url, record(tape):
        recorded = at_once_in_threads(url, [0, 0, 0])
    with replay(tape):
        again = at_once_in_threads("ws://127.0.0.1:40000", [0, 0, 0])
    assert sorted(again) == sorted(recorded)
    messages = [line for line in again if "to" in line]
    assert messages == [f"{nth} to {n}" for n in range(3) for nth in ("first", "second")]


async def test_a_cancelled_read_loses_no_message(tape: Path) -> None:
    """The next read gets it, recorded and replayed."""

    async def impatient(url: str) -> list[str]:
        noted = []
        async with on_loop.connect(url) as socket:
            with suppress(TimeoutError):
                noted.append(str(await asyncio.wait_for(socket.recv(), 0.02)))
            noted.append("gave up")
            await socket.send("a")
            noted += [str(await socket.recv()), str(await socket.recv())]
        return noted

    with websocket_server(echoes) as url, record(tape):
        recorded = await impatient(url)
    assert recorded == ["gave up", "first to a", "second to a"]
    with replay(tape):
        assert await impatient("ws://127.0.0.1:40000") == recorded


def test_a_timeout_of_a_thread_replays_where_it_was(tape: Path) -> None:
    """It is over at once in a replay, between the same messages."""

    def impatient(url: str) -> list[str]:
        noted = []
        with in_thread.connect(url) as socket:
            for step in ("none yet", "a", "first", "second", "none more"):
                if step == "a":
                    socket.send(step)
                    continue
                try:
                    noted.append(str(socket.recv(timeout=0.2)))
                except TimeoutError as error:
                    noted.append(f"{step}: {error}")
        return noted

    with websocket_server(echoes) as url:
        plain = impatient(url)
        with record(tape):
            assert impatient(url) == plain
    assert (len(plain), plain[1:3]) == (4, ["first to a", "second to a"])
    with replay(tape):
        assert impatient("ws://127.0.0.1:40000") == plain


async def test_two_connections_of_one_task_keep_their_messages(tape: Path) -> None:
    """Equal messages on two connections are told apart."""

    async def twice(url: str) -> list[str]:
        async with on_loop.connect(f"{url}/a") as a, on_loop.connect(f"{url}/b") as b:
            await a.send("same")
            await b.send("same")
            return [str(await socket.recv()) for socket in (b, a, a, b)]

    def names(connection: ServerConnection) -> None:
        assert connection.request is not None
        for _ in connection:
            for n in range(2):
                connection.send(f"{connection.request.path} {n}")

    with websocket_server(names) as url, record(tape):
        recorded = await twice(url)
    assert recorded == ["/b 0", "/a 0", "/a 1", "/b 1"]
    with replay(tape):
        assert await twice("ws://127.0.0.1:40000") == recorded


async def test_a_message_that_is_not_read_any_more_diverges(tape: Path) -> None:
    """The negative control: the agent reads one message less."""

    async def read(url: str, count: int) -> None:
        async with on_loop.connect(url) as socket:
            await socket.send("a")
            for _ in range(count):
                await socket.recv()

    with websocket_server(echoes) as url, record(tape):
        await read(url, 2)
    with Tape.open(tape) as recorded:
        assert len(recorded.exchanges[1].chunks) == 2
    with pytest.raises(DivergenceError, match="read less far"), replay(tape):
        await read("ws://127.0.0.1:40000", 1)
