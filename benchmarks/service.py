"""Measure a service under a Recorder: latency and CPU beside the plain one, and its memory."""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import Bench, Rounds, Samples, clean_environment
from table import Measurement, Row, Spread

TITLE = "A service that is always recorded"
PLAIN, FAILED, ALL = "no recorder", "Recorder, none fails", 'Recorder, keep="all"'
_KEEP = {PLAIN: "none", FAILED: "failed", ALL: "all"}
_SECONDS = {"model at once": "0", "model takes 0.2 s": "0.2"}
_MEMORY = "memory"
CASES = (
    *(f"{case}, {what}" for case in _SECONDS for what in ("p50", "p99", "CPU")),
    _MEMORY,
)
_AT_ONCE = 50
_CPU_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STRICTEST = 1.5
"""The largest acceptable ratio of recorded to plain, where the model takes its time."""
_FLAT = 1.05


def measure(bench: Bench) -> Measurement:
    """Measure rounds of requests, 50 at a time, to services that take turns."""
    url, rows = bench.provider(), list[Row]()
    requests = 200 if bench.quick else 500
    with ExitStack() as stack:
        services = {
            who: stack.enter_context(_service(bench.folder, url, keep))
            for who, keep in _KEEP.items()
        }
        for case, seconds in _SECONDS.items():

            def one(who: str, seconds: str = seconds) -> Samples:
                return services[who].ask(seconds, requests)

            rounds = bench.rounds(3 if bench.quick else 5, services, one)
            rows.extend(_rows(case, rounds))
    rows.extend(_memory(bench, url))
    return Measurement(
        TITLE,
        "A FastAPI route that asks a model once with OpenAI's SDK, under uvicorn, 50 requests at a "
        "time. `x` is recorded ÷ plain: of p50 and p99 of the latency, and of the CPU time of the "
        "service per request. Memory is the resident set after so many requests.",
        rows,
    )


def _rows(case: str, rounds: Rounds) -> Iterator[Row]:
    for what in ("p50", "p99", "CPU"):
        plain = statistics.median(one[what][0] for one in rounds[PLAIN])
        for who, found in rounds.items():
            spread = Spread.of([one[what][0] * 1e3 for one in found])
            if who == PLAIN:
                yield Row(f"{case}, {what}", who, spread, "ms")
                continue
            ratio = spread.median / 1e3 / plain
            aims = who == FAILED and (what == "CPU" or case != "model at once")
            yield Row(
                f"{case}, {what}",
                who,
                spread,
                "ms",
                f"{ratio:.2f} x",
                f"≤ {_STRICTEST} x" if aims else "",
                ratio <= _STRICTEST if aims else None,
            )


def _memory(bench: Bench, url: str) -> Iterator[Row]:
    first, last = (200, 2000) if bench.quick else (2000, 20_000)
    for who in (PLAIN, FAILED):
        with _service(bench.folder, url, _KEEP[who]) as service:
            service.ask("0", first)
            before = service.memory()
            service.ask("0", last - first)
            after = service.memory()
        yield Row(_MEMORY, f"{who}, {first:,}", Spread.of([before / 1e6]), "MB")
        yield Row(
            _MEMORY,
            f"{who}, {last:,}",
            Spread.of([after / 1e6]),
            "MB",
            f"{after / before:.2f} x",
            f"≤ {_FLAT} x" if who == FAILED else "",
            after / before <= _FLAT if who == FAILED else None,
        )


class _Service:
    """A service in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, seconds: str, requests: int) -> Samples:
        """Send requests, 50 at a time; return latencies and the service's CPU per request."""
        worked = self._cpu()
        latencies = sorted(asyncio.run(self._ask(seconds, requests)))
        cpu = (self._cpu() - worked) / requests
        p50, p99 = (latencies[int(len(latencies) * share)] for share in (0.5, 0.99))
        return {"p50": [p50], "p99": [p99], "CPU": [cpu]}

    def memory(self) -> int:
        """Return the resident set in bytes."""
        statm = Path(f"/proc/{self._process.pid}/statm").read_text().split()
        return int(statm[1]) * _PAGE

    async def _ask(self, seconds: str, requests: int) -> list[float]:
        import aiohttp

        numbers, took = iter(range(requests)), list[float]()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def client() -> None:
                for number in numbers:
                    began = time.perf_counter()
                    async with session.get(f"{self._url}/ask/{seconds}/{number}") as answer:
                        await answer.read()
                    answer.raise_for_status()
                    took.append(time.perf_counter() - began)

            await asyncio.gather(*(client() for _ in range(_AT_ONCE)))
        return took

    def _cpu(self) -> float:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / _CPU_TICK


@contextmanager
def _service(folder: Path, url: str, keep: str) -> Iterator[_Service]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tapes = {"RECORDER": keep, "TAPES": str(folder / f"tapes-{port}"), "PROVIDER": url}
    words = ["uvicorn", "service_app:app", "--port", str(port), "--log-level", "critical"]
    process = subprocess.Popen(
        [sys.executable, "-m", *words, "--no-access-log"],
        cwd=Path(__file__).parent,
        env={**clean_environment(), **tapes},
    )
    try:
        while process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield _Service(process, port)
    finally:
        process.terminate()
        process.wait()
