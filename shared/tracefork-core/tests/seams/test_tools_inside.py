"""Everything a tool does is part of its exchange, and not recorded by itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

from tracefork_core import Tape, record, replay, tool
from tracefork_testkit import ProviderServer

WAYS: dict[str, Callable[[str], object]] = {}


def way(function: Callable[[str], object]) -> Callable[[str], object]:
    WAYS[function.__name__] = function
    return function


def get(url: str) -> int:
    return httpx.get(f"{url}/v1/models", trust_env=False).status_code


@way
def directly(url: str) -> object:
    return get(url)


@way
def by_an_async_client(url: str) -> object:
    async def ask() -> int:
        async with httpx2.AsyncClient(trust_env=False) as client:
            asked = (client.get(f"{url}/v1/models") for _ in range(3))
            return len(await asyncio.gather(*asked))

    return asyncio.run(ask())


@way
def in_a_thread(url: str) -> object:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(get(url)))
    thread.start()
    thread.join()
    return found


@way
def in_a_pool(url: str) -> object:
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(httpx.get, f"{url}/v1/models", trust_env=False) for _ in range(2)]
        return [job.result().status_code for job in jobs]


@way
def in_a_program(url: str) -> object:
    code = f"import httpx; print(httpx.get('{url}/v1/models', trust_env=False).status_code)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


@way
def in_a_process(url: str) -> object:
    # Not `get`: a new process may not find the module of a test.
    asked, plainly = (f"{url}/v1/models",), {"trust_env": False}
    process = get_context("spawn").Process(target=httpx.get, args=asked, kwargs=plainly)
    process.start()
    process.join()
    assert process.exitcode == 0
    return process.exitcode


@way
def in_a_fork(url: str) -> object:
    process = get_context("fork").Process(target=get, args=(url,))
    process.start()
    process.join()
    assert process.exitcode == 0
    return process.exitcode


@way
def in_a_pool_of_processes(url: str) -> object:
    with ProcessPoolExecutor(1, get_context("forkserver")) as pool:
        jobs = [pool.submit(httpx.get, f"{url}/v1/models", trust_env=False) for _ in range(2)]
        return [job.result().status_code for job in jobs]


@way
def by_the_clock(url: str) -> object:
    time.sleep(0.001)
    return [str(uuid.uuid4()), time.time()]


@way
def by_other_tools(url: str) -> object:
    return tool(get)(url)


@pytest.mark.parametrize("name", WAYS)
def test_requests_and_draws_inside_a_tool_are_not_on_the_tape(name: str, tape: Path) -> None:
    """One exchange, no draws, all connections captured; it replays without the server."""
    work, runs = WAYS[name], []

    @tool
    def works() -> object:
        runs.append(1)
        return work(url)

    with ProviderServer() as server:
        url = server.url
        with record(tape) as recording:
            recorded = works()
    with replay(tape) as run:
        assert works() == recorded
    assert len(runs) == 1
    assert run.digest == run.tape.digest
    receipt = recording.receipt
    assert receipt is not None
    assert (receipt.crossed, receipt.strays, receipt.subprocesses) == (receipt.connections, [], [])
    with Tape.open(tape) as opened:
        assert [exchange.url for exchange in opened.exchanges] == ["tool:works"]
        assert list(opened.chance.reads) == []


def test_the_same_requests_and_draws_outside_a_tool_are_on_the_tape(tape: Path) -> None:
    """The control: done by the agent itself."""
    with ProviderServer() as server, record(tape):
        for name in ("directly", "in_a_thread", "in_a_program", "by_the_clock"):
            WAYS[name](server.url)
    with Tape.open(tape) as opened:
        assert len(opened.exchanges) == 3
        assert {reads.source for reads in opened.chance.reads} >= {"clock", "entropy", "sleep"}


async def test_requests_between_the_values_of_a_generator_are_on_the_tape(tape: Path) -> None:
    """While an async generator is suspended, the agent's own requests are recorded."""

    @tool
    async def pages(url: str) -> Any:
        async with httpx2.AsyncClient(trust_env=False) as client:
            for _ in range(2):
                yield (await client.get(f"{url}/v1/models")).status_code

    async def agent(url: str) -> list[int]:
        seen = []
        async with httpx2.AsyncClient(trust_env=False) as client:
            async for status in pages("http://127.0.0.1:1" if url == "gone" else url):
                seen.append(status)
                seen.append((await client.get(f"{url}/v1/models")).status_code)
        return seen

    with ProviderServer() as server:
        url = server.url
        with record(tape) as recording:
            recorded = await agent(url)
    with replay(tape) as run:
        assert await agent(url) == recorded
    assert run.digest == run.tape.digest
    assert recording.receipt is not None
    assert recording.receipt.strays == []
    with Tape.open(tape) as opened:
        assert [exchange.aside.seam for exchange in opened.exchanges] == [
            "tool",
            "httpx2",
            "httpx2",
        ]


def test_a_tool_of_a_child_process_is_on_the_tape(tape: Path, tmp_path: Path) -> None:
    """A Python subprocess joins the session of its parent, for tools, too."""
    script = tmp_path / "child.py"
    script.write_text(
        "import pathlib, tracefork_core as tracefork\n"
        "@tracefork.tool(effect='read')\n"
        "def count():\n"
        f"    pathlib.Path({str(tmp_path / 'ran')!r}).open('a').write('x')\n"
        "    return {1, 2}\n"
        "print(count())\n"
    )

    def agent() -> str:
        command = [sys.executable, str(script)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with record(tape):
        recorded = agent()
    with replay(tape):
        assert agent() == recorded == "{1, 2}\n"
    assert (tmp_path / "ran").read_text() == "x"
    with Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        assert (exchange.url, exchange.lane) == ("tool:count", "main/child.py.1")
        assert exchange.aside.effect == "read"
