"""Every way to read a response of aiohttp gives the same when recorded and when replayed."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_testkit import Fault, Hold, ProviderServer, Reply

Read = Callable[[aiohttp.ClientResponse], Awaitable[Any]]
LOT = b"so much of it\n" * 150_000
CHAT: Any = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


async def by_lines(response: aiohttp.ClientResponse) -> list[bytes]:
    """Iterate over the content itself."""
    return [line async for line in response.content]


async def until_the_end(response: aiohttp.ClientResponse) -> list[bytes]:
    """Check for the end before each line."""
    lines = []
    while not response.content.at_eof():
        lines.append(await response.content.readline())
    return [line for line in lines if line]


async def exactly(response: aiohttp.ClientResponse) -> list[bytes]:
    """Read fixed amounts, and fall short at the end."""
    read = [await response.content.readexactly(2 if response.content_length != 0 else 0)]
    with pytest.raises(asyncio.IncompleteReadError) as short:
        await response.content.readexactly(1 << 20)
    return [*read, short.value.partial]


async def a_bit_and_the_rest(response: aiohttp.ClientResponse) -> list[bytes]:
    """Read some from the stream, and the rest as a body."""
    return [await response.content.read(5), await response.read()]


async def after_the_end(response: aiohttp.ClientResponse) -> list[bytes]:
    """Wait until the whole body has arrived, and read it then."""
    await response.content.wait_eof()
    assert response.content.is_eof()
    return [response.content.read_nowait(4), response.content.read_nowait(), await response.read()]


async def twice(response: aiohttp.ClientResponse) -> list[Any]:
    """Read the body, then read it again, and from its exhausted stream."""
    body = await response.read()
    text = await response.text()
    return [body, text, await response.content.read(), response.content.at_eof()]


READS: dict[str, Read] = {
    "read": lambda response: response.read(),
    "text": lambda response: response.text(),
    "lines": by_lines,
    "until the end": until_the_end,
    "exactly": exactly,
    "a bit and the rest": a_bit_and_the_rest,
    "after the end": after_the_end,
    "twice": twice,
    "until": lambda response: response.content.readuntil(b"k"),
    "any": lambda response: collected(response.content.iter_any()),
    "chunked": lambda response: collected(response.content.iter_chunked(7)),
    "chunks": lambda response: collected(response.content.iter_chunks()),
}


async def collected(pieces: Any) -> list[Any]:
    """Read an iterator to its end."""
    return [piece async for piece in pieces]


@pytest.mark.parametrize("path", ["/chunked?n=5", "/bytes/100", "/gzip", "/bytes/0"])
@pytest.mark.parametrize("how", READS)
def test_every_way_to_read_replays(
    provider: ProviderServer, round_trip: Callable[..., Any], how: str, path: str
) -> None:
    """The pieces are the same, and the bytes are those without a session."""

    async def act(url: str) -> Any:
        async with aiohttp.ClientSession() as client, client.get(url + path) as response:
            return await READS[how](response)

    plain = asyncio.run(act(provider.url))
    trip = round_trip(provider, lambda url: asyncio.run(act(url)))
    assert trip.replayed == trip.recorded
    if how not in ("any", "chunks", "chunked"):  # Where a piece ends is up to the network.
        assert trip.recorded == plain


@pytest.mark.parametrize("how", ["read", "chunked", "lines", "any"])
def test_a_highly_compressed_body_is_unpacked_step_by_step(
    provider: ProviderServer, round_trip: Callable[..., Any], how: str
) -> None:
    """Two megabytes from a few kilobytes, in the steps that aiohttp itself makes."""

    async def act(url: str) -> Any:
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{url}/gzip", data=io.BytesIO(LOT)) as response,
        ):
            if how == "chunked":
                return [len(piece) async for piece in response.content.iter_chunked(1000)]
            return await READS[how](response)

    plain = asyncio.run(act(provider.url))
    trip = round_trip(provider, lambda url: asyncio.run(act(url)))
    assert trip.replayed == trip.recorded
    if how in ("read", "lines"):
        assert trip.recorded == plain


def test_iter_chunks_yields_the_same_http_chunks(round_trip: Callable[..., Any]) -> None:
    """One by one, at replay as while recording."""

    async def act(url: str) -> Any:
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{url}/chunked?n=4&delay=0.01") as response:
                # Where the end of a chunk comes late, aiohttp reports it as an empty one.
                return [data for data, _ in await collected(response.content.iter_chunks()) if data]

    with ProviderServer() as server:
        trip = round_trip(server, lambda url: asyncio.run(act(url)))
    assert trip.recorded == [b"chunk %d\n" % n for n in range(4)]
    assert trip.replayed == trip.recorded


async def test_a_stream_can_be_read_further_after_a_cancelled_read(tmp_path: Path) -> None:
    """An agent that waits in slices, for a heartbeat, loses nothing."""
    hold, path = Hold(after_chunks=2), tmp_path / "slices.tape"

    async def agent(url: str) -> tuple[bytes, int]:
        read, slices = b"", 0
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{url}/v1/chat/completions", json=CHAT) as response,
        ):
            while not response.content.at_eof():
                try:
                    read += await asyncio.wait_for(response.content.readany(), 0.05)
                except TimeoutError:
                    slices += 1
                    hold.release()
        return read, slices

    with ProviderServer([Reply("one two three four", hold=hold)]) as server:
        url = server.url
        with record(path):
            recorded, slices = await agent(url)
    assert slices >= 1
    with replay(path):
        assert (await agent(url))[0] == recorded
    with Tape.open(path) as tape:
        assert [exchange.end for exchange in tape.exchanges] == ["eof"]


async def test_two_readers_at_once_are_refused(tmp_path: Path) -> None:
    """As in plain aiohttp, a second coroutine cannot wait for the same stream."""
    hold = Hold(after_chunks=1)
    with ProviderServer([Reply("one two three", hold=hold)]) as server:
        with record(tmp_path / "two.tape"):
            async with (
                aiohttp.ClientSession() as client,
                client.post(f"{server.url}/v1/chat/completions", json=CHAT) as response,
            ):
                await response.content.readany()
                first = asyncio.ensure_future(response.content.readany())
                await asyncio.sleep(0)
                with pytest.raises(RuntimeError, match="another coroutine is already waiting"):
                    await response.content.readany()
                hold.release()
                assert await first
                await response.read()
    with Tape.open(tmp_path / "two.tape") as tape:
        assert tape.exchanges[0].end == "eof"


async def test_a_closed_response_cannot_be_read(provider: ProviderServer, tmp_path: Path) -> None:
    """It releases its connection, and its stream raises, as in plain aiohttp."""

    async def agent(url: str) -> list[str]:
        said = []
        async with aiohttp.ClientSession() as client:
            for leave in (aiohttp.ClientResponse.close, aiohttp.ClientResponse.release):
                response = await client.get(f"{url}/chunked?n=3&delay=0.05")
                leave(response)
                with pytest.raises(aiohttp.ClientConnectionError) as refused:
                    await response.content.read()
                said.append(str(refused.value))
                assert response.closed
                assert response.connection is None
        return said

    url = provider.url
    plain = await agent(url)
    with record(tmp_path / "closed.tape"):
        assert await agent(url) == plain
    with replay(tmp_path / "closed.tape"):
        assert await agent(url) == plain
    with Tape.open(tmp_path / "closed.tape") as tape:
        assert [exchange.end for exchange in tape.exchanges] == ["abandoned"] * 2


async def test_reading_a_body_that_the_recording_left_unread_diverges(
    provider: ProviderServer, tmp_path: Path
) -> None:
    """The tape does not hold that body."""
    url, path = f"{provider.url}/bytes/50", tmp_path / "unread.tape"
    async with aiohttp.ClientSession() as client:
        with record(path):
            async with client.get(url) as response:
                assert response.status == 200
        with pytest.raises(DivergenceError) as raised, replay(path):
            async with client.get(url) as response:
                await response.read()
        assert raised.value.divergence.kind == "read"


async def test_a_total_timeout_replays_at_once(tmp_path: Path) -> None:
    """aiohttp's `total` raises a TimeoutError, before the head or in the body."""
    limit = aiohttp.ClientTimeout(total=0.15)
    script: list[Fault | Reply] = [
        Fault(kind="timeout"),
        Reply("one two three", hold=Hold(after_chunks=1)),
    ]

    async def agent(url: str) -> list[tuple[str, str, bytes]]:
        seen = []
        async with aiohttp.ClientSession(timeout=limit) as client:
            for _ in script:
                read = b""
                try:
                    async with client.post(f"{url}/v1/chat/completions", json=CHAT) as response:
                        while piece := await response.content.readany():
                            read += piece
                except TimeoutError as error:
                    seen.append((type(error).__name__, str(error), read))
        return seen

    with ProviderServer(script) as server:
        url = server.url
        with record(tmp_path / "total.tape"):
            recorded = await agent(url)
    limit = aiohttp.ClientTimeout(total=3600)
    with replay(tmp_path / "total.tape"):
        assert await agent(url) == recorded
    assert [kind for kind, _, _ in recorded] == ["TimeoutError"] * 2
    assert recorded[1][2].count(b"data: ") == 1


async def test_a_late_end_is_not_an_empty_chunk(tmp_path: Path) -> None:
    """If a body ends after its last chunk was read, `iter_chunks` yields no empty chunk."""
    was_read, path = asyncio.Event(), tmp_path / "late.tape"

    async def serve(asked: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwords\r\n")
        await was_read.wait()
        writer.write(b"0\r\n\r\n")
        writer.close()

    async def act(url: str) -> list[tuple[bytes, bool]]:
        pieces = []
        async with aiohttp.ClientSession() as client, client.get(url) as response:
            async for piece in response.content.iter_chunks():
                pieces.append(piece)
                was_read.set()
        return pieces

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server, record(path):
        recorded = await act(url)
    async with replay(path):
        assert await act(url) == recorded == [(b"words", True)]
