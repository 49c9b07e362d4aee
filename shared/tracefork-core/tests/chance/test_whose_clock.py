"""To which session and lane a read of the clock belongs, and which reads stay real."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import httpx2
import time_machine

from tracefork_core import Tape, record, replay
from tracefork_testkit import ProviderServer

LATER = dt.timedelta(days=366)


def later() -> time_machine.travel:
    return time_machine.travel(time.time() + LATER.total_seconds())


def test_another_thread_does_not_shift_the_values_of_the_agent(tape: Path) -> None:
    """However often a logging handler reads the clock."""

    def agent(noise: int) -> list[int]:
        stop = threading.Event()

        def log() -> None:
            for i in range(noise):
                logging.getLogger("noise").warning("%s %s", i, time.time())
            stop.set()

        thread = threading.Thread(target=log)
        thread.start()
        reads = [time.time_ns() for _ in range(50)]
        stop.wait(20)
        thread.join()
        return [*reads, time.time_ns()]

    with record(tape):
        first = agent(noise=3)
    with later(), replay(tape):
        assert agent(noise=40) == first


def test_each_lane_has_its_own_reads(tape: Path) -> None:
    """Tasks that run in another order get their own values."""

    async def run(order: list[int]) -> dict[int, int]:
        turns = {i: asyncio.Event() for i in range(3)}

        async def task(i: int) -> int:
            time.time_ns()
            await turns[i].wait()
            return time.time_ns()

        tasks = [asyncio.create_task(task(i)) for i in range(3)]
        await asyncio.sleep(0)
        for i in order:
            turns[i].set()
            await tasks[i]
        return {i: tasks[i].result() for i in range(3)}

    with record(tape):
        first = asyncio.run(run([0, 1, 2]))
    with later(), replay(tape) as replaying:
        assert asyncio.run(run([2, 0, 1])) == first
    assert replaying.clock_misses == 0


class ReadingTransport(httpx2.HTTPTransport):
    """A transport that reads the clock, as connection pools and certificates do."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        for _ in range(7):
            assert abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) < 60
        return super().handle_request(request)


def test_reads_below_a_seam_are_off_the_tape(tape: Path, provider: ProviderServer) -> None:
    """They are real, and their absence at replay is no miss."""

    def agent() -> int:
        with httpx2.Client(transport=ReadingTransport(verify=False)) as client:
            client.get(f"{provider.url}/bytes/3")
        return time.time_ns()

    with record(tape):
        first = agent()
    with Tape.open(tape) as recorded:
        sites = [reads.site for reads in recorded.draws]
    assert sites
    assert not any("ReadingTransport" in site for site in sites)
    assert not any("httpcore" in site or "tracefork_core" in site for site in sites)
    with later(), replay(tape) as run:
        assert agent() == first
    assert run.clock_misses == 0


def test_parallel_sessions_have_a_clock_each(tmp_path: Path) -> None:
    """Two threads replay two tapes at once."""
    both = threading.Barrier(2, timeout=20)
    pasts = {1: 1_000_000_000, 2: 1_500_000_000}
    for n, past in pasts.items():
        with time_machine.travel(past, tick=False), record(tmp_path / f"{n}.tape"):
            assert read() == past

    def run(n: int) -> float:
        with replay(tmp_path / f"{n}.tape"):
            both.wait()
            now = read()
            both.wait()
        return now

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(copy_context().run, run, n) for n in pasts]
        assert [job.result() for job in jobs] == [1_000_000_000, 1_500_000_000]
    assert read() > 1_600_000_000


def read() -> float:
    return time.time()


def test_a_nested_session_has_its_own_clock(tmp_path: Path) -> None:
    """The inner session answers inside, then the outer one, then the real clock."""
    outer, inner = tmp_path / "outer.tape", tmp_path / "inner.tape"

    def thrice(between: Callable[[], float]) -> list[float]:
        return [read(), between(), read()]

    with time_machine.travel(1_000_000_000, tick=False), record(inner):
        read()
    with time_machine.travel(1_500_000_000, tick=False), record(outer):
        thrice(lambda: 0.0)

    def nested() -> float:
        with replay(inner):
            return read()

    with replay(outer):
        assert thrice(nested) == [1_500_000_000, 1_000_000_000, 1_500_000_000]
    assert read() > 1_600_000_000


def test_a_thread_of_no_session_reads_the_real_clock(tmp_path: Path) -> None:
    """With two sessions open, a thread without context gets the time, not an error."""
    with ThreadPoolExecutor(1) as pool, record(tmp_path / "1.tape"), record(tmp_path / "2.tape"):
        now = pool.submit(read).result()
    assert abs(now - time.clock_gettime(time.CLOCK_REALTIME)) < 60
