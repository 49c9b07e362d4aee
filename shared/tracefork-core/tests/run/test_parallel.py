"""Several sessions: one after the other, in two threads, in two tasks, and without a context."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2

from tracefork_core import Tape, record, replay
from tracefork_testkit import ProviderServer


def bodies(tape: Path) -> list[bytes]:
    with Tape.open(tape) as recorded:
        assert recorded.complete
        return [exchange.response_body for exchange in recorded.exchanges]


def test_sequential_sessions_have_a_tape_each(
    tmp_path: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Requests between two blocks are on neither tape."""
    for n in (1, 2):
        with record(tmp_path / f"{n}.tape"):
            http.get(f"{provider.url}/bytes/{n}")
        http.get(f"{provider.url}/bytes/9")
    assert (bodies(tmp_path / "1.tape"), bodies(tmp_path / "2.tape")) == ([b"\0"], [b"\0\1"])


def test_two_threads_record_and_replay_side_by_side(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """Each thread opens a session in its own context, which records to its own tape."""
    both = threading.Barrier(2, timeout=20)

    def run(n: int) -> bytes:
        tape = tmp_path / f"{n}.tape"
        with httpx2.Client(verify=False) as client:

            def ask() -> bytes:
                both.wait()
                seen = client.get(f"{provider.url}/bytes/{n}").content
                both.wait()
                return seen

            first = record(tape)(ask)()
            assert replay(tape)(ask)() == first
            return first

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, (1, 2))) == [b"\0", b"\0\1"]
    assert (bodies(tmp_path / "1.tape"), bodies(tmp_path / "2.tape")) == ([b"\0"], [b"\0\1"])


async def test_two_tasks_record_side_by_side(tmp_path: Path, provider: ProviderServer) -> None:
    """A task passes its session to the tasks that it starts, and to no other."""
    both = asyncio.Barrier(2)

    async def run(client: httpx2.AsyncClient, n: int) -> None:
        async with record(tmp_path / f"{n}.tape"):
            await both.wait()
            await asyncio.gather(*(client.get(f"{provider.url}/bytes/{n}") for _ in range(3)))
            await both.wait()

    async with httpx2.AsyncClient(verify=False) as client:
        await asyncio.gather(run(client, 1), run(client, 2))
    assert bodies(tmp_path / "1.tape") == [b"\0"] * 3
    assert bodies(tmp_path / "2.tape") == [b"\0\1"] * 3


def test_with_two_sessions_an_older_thread_is_left_alone(
    tmp_path: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    elder: Callable[[Callable[[], Any]], Any],
) -> None:
    """It gets its answer, and is on neither tape."""

    def ask() -> bytes:
        return http.get(f"{provider.url}/bytes/1").content

    with record(tmp_path / "1.tape"):
        with record(tmp_path / "2.tape"):
            assert elder(ask) == b"\0"
        assert elder(ask) == b"\0"
    assert len(provider.requests) == 2
    assert (bodies(tmp_path / "1.tape"), bodies(tmp_path / "2.tape")) == ([], [])


def test_a_pool_job_belongs_to_the_session_that_submitted_it(
    tmp_path: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """It does not matter which thread runs the job."""
    with ThreadPoolExecutor(1) as pool, record(tmp_path / "1.tape"):
        with record(tmp_path / "2.tape"):
            pool.submit(http.get, f"{provider.url}/bytes/2").result()
        pool.submit(http.get, f"{provider.url}/bytes/1").result()
    assert bodies(tmp_path / "1.tape") == [b"\0"]
    assert bodies(tmp_path / "2.tape") == [b"\0\1"]
