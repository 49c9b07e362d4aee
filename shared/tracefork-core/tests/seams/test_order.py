"""Concurrent requests get their own answers, in the recorded order."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest

from tracefork_core import record, replay
from tracefork_testkit import Hold, ModelRequest, ProviderServer, Reply

Post = Callable[[str, Any], Awaitable[str]]


async def by_aiohttp(client: Any, url: str, document: Any) -> str:
    """Post a document and return the text of the answer."""
    async with client.post(url, json=document) as response:
        return str(await response.text())


async def by_httpx(client: Any, url: str, document: Any) -> str:
    """Post a document and return the text of the answer."""
    return str((await client.post(url, json=document)).text)


CLIENTS: dict[str, tuple[Callable[[], Any], Callable[..., Awaitable[str]]]] = {
    "httpx": (lambda: httpx.AsyncClient(verify=False), by_httpx),
    "httpx2": (lambda: httpx2.AsyncClient(verify=False), by_httpx),
    "aiohttp": (aiohttp.ClientSession, by_aiohttp),
}


@pytest.fixture(params=list(CLIENTS.values()), ids=list(CLIENTS))
def client(request: pytest.FixtureRequest) -> Any:
    """Return, for each async library, how to make a client and how to post with it."""
    return request.param


def chat(text: str, *, stream: bool = False) -> dict[str, Any]:
    """Return a request for one answer."""
    return {"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}


async def test_equal_concurrent_requests_get_their_own_answers(client: Any, tmp_path: Path) -> None:
    """Eight equal requests at once, to a provider that never repeats an answer."""
    make, post = client

    async def agent(url: str) -> list[str]:
        async with make() as opened:
            asks = (post(opened, f"{url}/v1/chat/completions", chat("same")) for _ in range(8))
            return await asyncio.gather(*asks)

    with ProviderServer(nondeterministic=True) as server:
        url = server.url
        with record(tmp_path / "same.tape"):
            recorded = await agent(url)
    with replay(tmp_path / "same.tape"):
        replayed = await agent(url)
    assert len(set(recorded)) == 8
    assert replayed == recorded


async def test_a_fan_in_joins_in_the_recorded_order(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four branches end last to first, in each of twenty replays."""
    make, post = client
    holds = [Hold(after_chunks=0) for _ in range(4)]

    def script(request: ModelRequest) -> Reply:
        return Reply("done", hold=holds[int(request.last_user_text)])

    async def agent(url: str) -> list[int]:
        joined: list[int] = []

        async def branch(n: int) -> None:
            await post(opened, f"{url}/v1/chat/completions", chat(str(n), stream=n % 2 == 0))
            joined.append(n)
            if n:
                holds[n - 1].release()

        async with make() as opened, asyncio.TaskGroup() as branches:
            for n in range(4):
                branches.create_task(branch(n))
            if not holds[3].reached.is_set():
                await asyncio.to_thread(reached_all)
            holds[3].release()
        return joined

    def reached_all() -> None:
        assert all(hold.reached.wait(10) for hold in holds)

    with ProviderServer(script) as server:
        url = server.url
        with record(tmp_path / "join.tape"):
            assert await agent(url) == [3, 2, 1, 0]
    for _ in range(20):
        with replay(tmp_path / "join.tape"):
            assert await agent(url) == [3, 2, 1, 0]
    monkeypatch.setattr("tracefork_core.order.policies.Recorded.is_due", lambda *_: True)
    with replay(tmp_path / "join.tape"):
        assert await agent(url) != [3, 2, 1, 0]


def test_threads_with_a_context_get_their_own_answers(tmp_path: Path) -> None:
    """Equal requests of four threads that were started in the context of the session."""

    def agent(url: str) -> list[str]:
        with httpx.Client(verify=False) as opened, ThreadPoolExecutor(4) as pool:

            def ask(n: int) -> str:
                own = opened.post(f"{url}/v1/chat/completions", json=chat(f"I am {n}")).text
                same = opened.post(f"{url}/v1/chat/completions", json=chat("same")).text
                return own + same

            jobs = [pool.submit(contextvars.copy_context().run, ask, n) for n in range(4)]
            return [job.result() for job in jobs]

    with ProviderServer(nondeterministic=True) as server:
        url = server.url
        with record(tmp_path / "threads.tape"):
            recorded = agent(url)
    with replay(tmp_path / "threads.tape"):
        replayed = agent(url)
    assert len(set(recorded)) == 4
    assert replayed == recorded
