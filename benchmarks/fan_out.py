"""Measure what delivering one piece at a time costs: a fan-out, recorded and not."""

from __future__ import annotations

import asyncio
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from bench import Bench, Samples
from recorders import CORE, PLAIN, Recorder
from table import Measurement, Row, Spread

if TYPE_CHECKING:
    import httpx2

BRANCHES = 8
EVENT_SECONDS = 0.02
TITLE = "A fan-out of streams"
CASES = ("8 tasks", "8 threads")


def measure(bench: Bench) -> Measurement:
    """Measure a fan-out of streams, in tasks and in threads."""
    url = bench.provider(chunk_delay=EVENT_SECONDS)
    names = bench.present(PLAIN, CORE)
    rows: list[Row] = []
    for case in CASES:

        def one(who: str, case: str = case) -> Samples:
            return bench.ask(who, fan_out, url=url, case=case, path=bench.path())

        rounds = bench.rounds(3 if bench.quick else 9, names, one)
        plain = rounds[PLAIN]
        for who, found in rounds.items():
            ratio = statistics.median(
                statistics.median(mine["seconds"]) / statistics.median(theirs["seconds"])
                for mine, theirs in zip(found, plain, strict=True)
            )
            spread = Spread.of([seconds * 1e3 for one in found for seconds in one["seconds"]])
            rows.append(Row(case, who, spread, "ms", f"{ratio:.3f} x"))
    return Measurement(
        TITLE,
        f"{BRANCHES} streams at once, 20 ms between events. The time from starting all branches to "
        "having read all streams, on warm connections. All streams deliver at the same time, so "
        "each delivery waits until the one before it is done.",
        rows,
    )


def fan_out(recorder: Recorder, url: str, case: str, path: str) -> Samples:
    """Read streams at once, several times; return the seconds of each time except the first."""
    with recorder.record(Path(path)) as clients:
        if case == CASES[0]:
            seconds = asyncio.run(_tasks(clients.asynchronous(), url))
        else:
            with clients.sync() as http:
                seconds = [_threads(http, url) for _ in range(4)]
    return {"seconds": seconds[1:]}


def _body() -> dict[str, object]:
    said = {"role": "user", "content": "@say eight at once"}
    return {"model": "gpt-5-mini", "messages": [said], "stream": True}


async def _tasks(http: httpx2.AsyncClient, url: str) -> list[float]:
    async def branch() -> None:
        async with http.stream("POST", f"{url}/v1/chat/completions", json=_body()) as response:
            async for _ in response.aiter_raw():
                pass

    seconds = []
    async with http:
        for _ in range(4):
            began = time.perf_counter()
            await asyncio.gather(*(branch() for _ in range(BRANCHES)))
            seconds.append(time.perf_counter() - began)
    return seconds


def _threads(http: httpx2.Client, url: str) -> float:
    def branch(_number: int) -> None:
        with http.stream("POST", f"{url}/v1/chat/completions", json=_body()) as response:
            for _ in response.iter_raw():
                pass

    began = time.perf_counter()
    with ThreadPoolExecutor(BRANCHES) as pool:
        list(pool.map(branch, range(BRANCHES)))
    return time.perf_counter() - began
