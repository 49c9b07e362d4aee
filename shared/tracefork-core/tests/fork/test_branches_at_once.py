"""Forks of agents with parallel calls, and several forks at the same time."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest

from tracefork_core import Edit, Tape, fork, record, replay
from tracefork_testkit import ModelRequest, ProviderServer, Reply

from .agent import Moody, run

NAMES = ["a", "b", "c", "d"]


class Slow(Moody):
    """Answers the later letters first."""

    def __call__(self, request: ModelRequest) -> Reply:
        said = super().__call__(request).text
        delay = 0.02 * (4 - NAMES.index(request.last_user_text[0])) if len(self.asked) < 5 else 0
        return Reply(f"{request.last_user_text[0]}: {said}", delay=delay)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def url(slow: Slow) -> Iterator[str]:
    with ProviderServer(slow) as server:
        yield f"{server.url}/v1/chat/completions"


def question(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def said(answer: Any) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def gathered(url: str) -> list[str]:
    """Make four calls in tasks, note answers as they arrive, and make one more with all."""
    notes: list[str] = []

    async def branch(client: httpx2.AsyncClient, name: str) -> None:
        notes.append(said(await client.post(url, json=question(name))))

    async def main() -> str:
        async with httpx2.AsyncClient(verify=False) as client:
            await asyncio.gather(*(branch(client, name) for name in NAMES))
            return said(await client.post(url, json=question("a " + ", ".join(notes))))

    summary = asyncio.run(main())
    return [*notes, summary]


def pooled(url: str) -> list[str]:
    """Make four calls in threads, and one more with the sorted answers."""
    with httpx2.Client(verify=False) as client, ThreadPoolExecutor(4) as pool:
        notes = sorted(pool.map(lambda n: said(client.post(url, json=question(n))), NAMES))
        return [*notes, said(client.post(url, json=question("a " + ", ".join(notes))))]


@pytest.mark.parametrize("agent", [gathered, pooled])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_fan_out_can_be_forked_in_its_middle(
    tape: Path, url: str, slow: Slow, agent: Callable[[str], list[str]], at: int
) -> None:
    """Calls before the fork point come from the tape, the others are live; the branch replays."""
    with record(tape):
        recorded = agent(url)
    with fork(tape, at=at) as branch:
        forked = agent(url)
    assert (branch.replayed, branch.live) == (at, 5 - at)
    assert len([one for one in forked if one in recorded]) == at
    with replay(branch.path) as again:
        assert agent(url) == forked
    assert again.digest == branch.digest
    assert len(slow.asked) == 10 - at


def test_forks_in_threads_are_independent(tape: Path) -> None:
    """Eight forks at the same time, at three fork points, each with its own answer."""
    with ProviderServer(Moody()) as server:
        url = server.url
        with record(tape):
            run(url)
        start = threading.Barrier(8, timeout=20)

        def one(n: int) -> tuple[list[str], Path]:
            path = tape.with_name(f"{n}.tape")
            start.wait()
            with fork(tape, at=n % 3, replace=f"mine is {n}", to=path):
                return run(url), path

        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(one, range(8)))
    for n, (answers, path) in enumerate(done):
        assert answers[n % 3] == f"mine is {n}"
        with replay(path):
            assert run(url) == answers


def test_forks_in_tasks_are_independent(tape: Path) -> None:
    """The same forks on one event loop."""

    async def agent(url: str) -> list[str]:
        async with httpx2.AsyncClient(verify=False) as client:
            first = said(await client.post(url, json=question("one")))
            return [first, said(await client.post(url, json=question(f"two {first}")))]

    async def one(n: int, url: str) -> list[str]:
        async with fork(tape, at=0, replace=f"mine is {n}", to=tape.with_name(f"{n}.tape")):
            return await agent(url)

    async def main(url: str) -> list[list[str]]:
        async with record(tape):
            await agent(url)
        return await asyncio.gather(*(one(n, url) for n in range(6)))

    with ProviderServer(Moody()) as server:
        done = asyncio.run(main(f"{server.url}/v1/chat/completions"))
    assert [answers[0] for answers in done] == [f"mine is {n}" for n in range(6)]


def test_aiohttp_sends_an_edited_request(tape: Path, url: str, slow: Slow) -> None:
    """The new prompt is sent with its own Content-Length."""

    async def agent() -> str:
        async with aiohttp.ClientSession() as client:
            async with client.post(url, json=question("a question that is rather long")) as answer:
                return str((await answer.json())["choices"][0]["message"]["content"])

    with record(tape):
        asyncio.run(agent())
    with fork(tape, at=0, replace=Edit(prompt="b")):
        assert asyncio.run(agent()) == "b: answer 2"
    assert slow.asked == ["a question that is rather long", "b"]


def test_a_fork_continues_the_clock_and_randomness_of_its_parent(tape: Path, url: str) -> None:
    """Time, ids and random values continue as recorded, and are on the branch."""

    def agent() -> list[str]:
        drawn = []
        with httpx2.Client(verify=False) as client:
            for _ in range(3):
                drawn.append(f"a {time.time_ns()} {uuid.uuid4()} {random.random()}")
                client.post(url, json=question(drawn[-1]))
        return drawn

    with record(tape):
        recorded = agent()
    with fork(tape, at=1) as branch:
        assert agent() == recorded
    with replay(branch.path):
        assert agent() == recorded


def test_sleeps_before_the_fork_point_take_no_time(tape: Path, url: str) -> None:
    """They end in their recorded turn; later sleeps take their real time."""

    async def agent() -> list[float]:
        took = []
        async with httpx2.AsyncClient(verify=False) as client:
            for _ in range(2):
                await client.post(url, json=question("a"))
                began = time.monotonic()
                await asyncio.sleep(0.3)
                took.append(time.monotonic() - began)
            await client.post(url, json=question("a"))
        return took

    with record(tape):
        asyncio.run(agent())
    with fork(tape, at=1) as branch:
        first, second = asyncio.run(agent())
    assert first < 0.2 < 0.3 <= second
    with replay(branch.path):
        asyncio.run(agent())


def test_a_branch_can_be_forked(tape: Path) -> None:
    """Three generations: each stores its own tail and replays alone."""
    with ProviderServer(Moody()) as server:
        url = server.url
        with record(tape):
            run(url)
        with fork(tape, at=1, replace="first") as child:
            run(url)
        with fork(child.path, at=2, replace="second") as grandchild:
            answers = run(url)
    assert answers == ["answer 1", "first", "second"]
    with replay(grandchild.path):
        assert run(url) == answers
    with Tape.open(grandchild.path) as branch:
        assert branch.needs == [child.path.name, tape.name]
