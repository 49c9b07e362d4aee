"""A cancelled request ends in the same round of the event loop as when it was recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx2
import pytest

import tracefork_core as tracefork
from tracefork_core import DivergenceError, record, replay
from tracefork_core.session import replayed_exchange
from tracefork_testkit import ProviderServer

SLOW = {"model": "m", "messages": [{"role": "user", "content": "@slow 30"}]}


@tracefork.tool(effect="read")
async def careful() -> None:
    """Take some rounds to clean up."""
    try:
        await asyncio.Event().wait()
    finally:
        for _ in range(5):
            await asyncio.sleep(0)


async def _connecting(client: httpx2.AsyncClient) -> None:
    await client.post("/v1/chat/completions", json=SLOW)


async def _reading(client: httpx2.AsyncClient) -> None:
    body = {**SLOW, "stream": True, "messages": [{"role": "user", "content": "long " * 50}]}
    async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        async for _ in answer.aiter_raw():
            pass


async def _calling(_: httpx2.AsyncClient) -> None:
    await careful()


Asking = Callable[[httpx2.AsyncClient], Coroutine[Any, Any, None]]


@pytest.mark.parametrize(
    ("asking", "after"),
    [(_connecting, 0.0), (_connecting, 0.3), (_reading, 0.3), (_calling, 0.01)],
)
def test_a_cancelled_request_ends_after_the_recorded_number_of_rounds(
    tape: Path, asking: Asking, after: float
) -> None:
    """It is cancelled while it connects, waits, reads, or cleans up."""

    async def rounds(url: str) -> int:
        async with httpx2.AsyncClient(verify=False, base_url=url) as client:
            task = asyncio.ensure_future(asking(client))
            await asyncio.sleep(after)
            task.cancel()
            passed = 0
            while not task.done():
                await asyncio.sleep(0)
                passed += 1
            return passed

    with ProviderServer(chunk_delay=0.1) as provider, record(tape):
        url = provider.url
        recorded = asyncio.run(rounds(url))
    assert recorded > 1
    for _ in range(3):
        with replay(tape):
            assert asyncio.run(rounds(url)) == recorded


def test_the_first_of_two_tasks_to_end_stays_first(tape: Path, provider: ProviderServer) -> None:
    """Of two races that end at once, the one that has a request to cancel ends later."""

    async def first(*racing: Awaitable[Any]) -> list[bool]:
        tasks = [asyncio.ensure_future(one) for one in racing]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        found = [task in done for task in tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return found

    async def nothing() -> None: ...

    async def run() -> str:
        async with httpx2.AsyncClient(verify=False, base_url=provider.url) as client:
            slow = client.post("/v1/chat/completions", json=SLOW)
            found = await first(first(nothing(), nothing()), first(slow, nothing()))
            body = {"model": "m", "messages": [{"role": "user", "content": f"{found}"}]}
            return (await client.post("/v1/chat/completions", json=body)).text

    with record(tape):
        recorded = asyncio.run(run())
    for _ in range(5):
        with replay(tape):
            assert asyncio.run(run()) == recorded


@pytest.mark.parametrize("counted", [True, False])
def test_tasks_cancelled_at_once_end_in_the_recorded_order(
    tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    """A replay that does not wait for the recorded rounds diverges: counting them is needed."""

    async def run() -> str:
        ended: list[str] = []
        async with httpx2.AsyncClient(verify=False, base_url=provider.url) as client:
            tasks = []
            for asking in (_calling, _reading, _connecting):
                task = asyncio.create_task(asking(client), name=asking.__name__)
                task.add_done_callback(lambda task: ended.append(task.get_name()))
                tasks.append(task)
            await asyncio.sleep(0.3)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            body = {"model": "m", "messages": [{"role": "user", "content": f"{ended}"}]}
            return (await client.post("/v1/chat/completions", json=body)).text

    with record(tape):
        recorded = asyncio.run(run())
    if not counted:
        monkeypatch.setattr(replayed_exchange, "_MOST_ROUNDS", 0)
        with pytest.raises(DivergenceError), replay(tape):
            asyncio.run(run())
        return
    for _ in range(5):
        with replay(tape):
            assert asyncio.run(run()) == recorded
