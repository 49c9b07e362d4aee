"""If an agent stops reading or waiting, the tape holds what it got, and how it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_testkit import Hold, ProviderServer, Reply

ASK: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
}
LONG = Reply("one two three four five six seven eight nine ten", chunk_delay=0.002)

Open = Callable[[str], Any]


@asynccontextmanager
async def with_aiohttp(url: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """Open a stream and yield its pieces."""
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{url}/v1/chat/completions", json=ASK) as response,
    ):
        yield response.content.iter_any()


def with_httpx(lib: Any) -> Open:
    """Return what opens a stream of httpx or httpx2 and yields its pieces."""

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async with (
            lib.AsyncClient(verify=False) as client,
            client.stream("POST", f"{url}/v1/chat/completions", json=ASK) as response,
        ):
            yield response.aiter_raw()

    return opened


STREAMS = {"httpx": with_httpx(httpx), "httpx2": with_httpx(httpx2), "aiohttp": with_aiohttp}


@pytest.fixture(params=list(STREAMS.values()), ids=list(STREAMS))
def opened(request: pytest.FixtureRequest) -> Open:
    """Return each asynchronous library in turn."""
    found: Open = request.param
    return found


def test_an_abandoned_stream_is_recorded_as_far_as_it_was_read(
    library: Any, round_trip: Callable[..., Any]
) -> None:
    """After `break` and close, the pieces come back, and the tape says that the agent stopped."""
    with ProviderServer([LONG, Reply("next")]) as server:
        ask = {"path": "/v1/chat/completions", "method": "POST", "json": ASK}
        trip = round_trip(server, lambda url: library.all(url, {**ask, "stop_after": 3}, ask))
    assert len(trip.replayed[0].chunks) == 3
    assert trip.replayed == trip.recorded
    assert [end for _, _, end in trip.tape] == ["abandoned", "eof"]


def test_reading_further_than_recorded_diverges(library: Any, tmp_path: Path) -> None:
    """The tape does not hold what would have come next."""
    ask = {"path": "/v1/chat/completions", "method": "POST", "json": ASK}
    with ProviderServer([LONG]) as server:
        url = server.url
        with record(tmp_path / "left.tape"):
            library.all(url, {**ask, "stop_after": 2})
    with (
        pytest.raises(DivergenceError) as raised,
        replay(tmp_path / "left.tape"),
    ):
        library.all(url, ask)
    assert raised.value.divergence.kind == "read"


async def wait_for(hold: Hold) -> None:
    """Run the loop until the server has stopped where the script says."""
    assert await asyncio.to_thread(hold.reached.wait, 10)


async def cancel_once(happened: Awaitable[object], work: Awaitable[object]) -> list[bytes]:
    """Cancel `work` after an event; return what it had read."""
    task = asyncio.ensure_future(work)
    await happened
    task.cancel()
    done, _ = await asyncio.wait([task])
    assert done.pop().cancelled()
    return []


async def test_a_request_cancelled_before_its_head_replays(opened: Open, tmp_path: Path) -> None:
    """At replay no head comes until the agent cancels again."""
    hold, path = Hold(after_chunks=0), tmp_path / "head.tape"

    async def read(url: str) -> None:
        async with opened(url):
            raise AssertionError("a head came")

    with ProviderServer([Reply("late", hold=hold)]) as server:
        url = server.url
        with record(path):
            await cancel_once(wait_for(hold), read(url))
        hold.release()
    with replay(path) as replaying:
        task = asyncio.ensure_future(read(url))
        await settled()
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    assert replaying.exchanges == 1


async def test_a_request_cancelled_within_its_body_replays(opened: Open, tmp_path: Path) -> None:
    """The pieces come back, then nothing until the agent cancels again."""
    hold, path = Hold(after_chunks=3), tmp_path / "body.tape"
    read: list[bytes] = []
    enough = asyncio.Event()

    async def consume(url: str) -> None:
        async with opened(url) as pieces:
            async for piece in pieces:
                read.append(piece)
                if b"".join(read).count(b"data: ") == 3:
                    enough.set()

    with ProviderServer([Reply(LONG.text, hold=hold)]) as server:
        url = server.url
        with record(path):
            await cancel_once(enough.wait(), consume(url))
        hold.release()
    recorded = list(read)
    read.clear()
    enough.clear()
    with replay(path):
        await cancel_once(enough.wait(), consume(url))
    assert read == recorded
    with Tape.open(path) as tape:
        assert [exchange.end for exchange in tape.exchanges] == ["cancelled"]


async def settled() -> None:
    """Let the loop run everything that is ready."""
    for _ in range(50):
        await asyncio.sleep(0)
