"""Deliveries of aiohttp are made one at a time, and nothing gets lost meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tracefork_core import record, replay
from tracefork_testkit import Fault, Hold, ModelRequest, ProviderServer, Reply


def asking(url: str, text: str, **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    return {"url": f"{url}/v1/chat/completions", "json": body}


def block(seconds: float) -> None:
    """Block the event loop, so that all data that arrives waits for the same round."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


@contextlib.asynccontextmanager
async def busy_loop() -> AsyncIterator[None]:
    """Keep the event loop busy, so that deliveries wait: some hundred rounds of a millisecond."""

    async def spin() -> None:
        while True:
            block(0.001)
            await asyncio.sleep(0)

    spinning = asyncio.create_task(spin())
    yield
    spinning.cancel()


def test_answers_that_arrive_in_one_round_are_delivered_one_by_one(tape: Path) -> None:
    """The agent is done with the first answer before it gets the second."""
    hold = Hold()

    def script(request: ModelRequest) -> Reply:
        return Reply(text="x", hold=hold if request.last_user_text == "at once" else None)

    async def run(url: str, let_go: Callable[[], None]) -> list[int]:
        came: list[int] = []
        async with aiohttp.ClientSession() as client:

            async def branch(i: int) -> None:
                async with client.post(**asking(url, "at once")) as answer:
                    await answer.json()
                for _ in range(9 - 3 * i):
                    await asyncio.sleep(0)
                came.append(i)

            branches = asyncio.gather(*(branch(i) for i in range(4)))
            async with client.post(**asking(url, "by now the others have asked")) as answer:
                await answer.json()
            let_go()
            await branches
            async with client.post(**asking(url, f"{came}")) as answer:
                await answer.json()
        return came

    def let_go() -> None:
        hold.release()
        block(0.2)

    with ProviderServer(script) as provider, record(tape):
        url = provider.url
        recorded = asyncio.run(run(url, let_go))
    with replay(tape) as replaying:
        assert asyncio.run(run(url, lambda: None)) == recorded
    assert replaying.digest == replaying.tape.digest


@pytest.mark.parametrize("kind", ["truncate", "reset"])
def test_data_before_a_broken_body_is_delivered(tape: Path, kind: Any) -> None:
    """Also if the body broke off while that data waited for its turn."""
    cut = Fault(kind=kind, after_chunks=4, reply=Reply("one two three four five six"))

    async def run(url: str) -> tuple[bytes, str]:
        read = b""
        async with (
            aiohttp.ClientSession() as client,
            busy_loop(),
            client.post(**asking(url, "hi", stream=True)) as answer,
        ):
            try:
                while piece := await answer.content.readany():
                    read += piece
            except aiohttp.ClientError as error:
                return read, repr(error)
        return read, "nothing broke"

    with ProviderServer(lambda _: cut, chunk_delay=0.02) as provider:
        plain = asyncio.run(run(provider.url))
    assert plain[1] != "nothing broke"
    with ProviderServer(lambda _: cut, chunk_delay=0.02) as provider, record(tape):
        url = provider.url
        assert asyncio.run(run(url)) == plain
    with replay(tape) as replaying:
        assert asyncio.run(run(url)) == plain
    assert replaying.digest == replaying.tape.digest


@pytest.mark.parametrize("by_chunk", [False, True])
def test_a_read_cancelled_while_its_piece_waits_loses_nothing(
    tape: Path, provider: ProviderServer, *, by_chunk: bool
) -> None:
    """The next read gets the piece."""

    async def run() -> bytes:
        read = b""
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{provider.url}/chunked?n=6&delay=0.01") as answer,
        ):
            await asyncio.sleep(0.001)  # Or the piece follows the head at once.
            async with busy_loop():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        while not answer.content.at_eof():
                            if by_chunk:
                                read += (await answer.content.readchunk())[0]
                            else:
                                read += await answer.content.readany()
            return read + await answer.read()

    with record(tape):
        assert asyncio.run(run()) == b"".join(b"chunk %d\n" % n for n in range(6))
    with replay(tape) as replaying:
        assert asyncio.run(run()) == b"".join(b"chunk %d\n" % n for n in range(6))
    assert replaying.digest == replaying.tape.digest
