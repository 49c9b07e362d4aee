"""Measure what recording adds to a call, in wall time and CPU, beside one commit."""

from __future__ import annotations

import json
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bench import Bench, Rounds, Samples
from peers import CRASH_SAFE, IN_MEMORY, VCR_BODY
from recorders import CORE, PLAIN, Recorder
from table import Measurement, Row, Spread
from words import words

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

OWN_CPU_TARGET = 200e-6
LEAST = "plain, then one commit"
_SIZES = {"1 KB": 1_000, "100 KB": 100_000}
TITLE = "What recording adds to a call"
CASES = tuple(f"{size}, {what}" for size in _SIZES for what in ("wall time", "CPU", "saving"))


def measure(bench: Bench) -> Measurement:
    """Measure calls of 1 KB and 100 KB each way, each with a different text."""
    url = bench.provider()
    calls = 10 if bench.quick else 40
    names = [PLAIN, LEAST, *bench.present(CORE, CRASH_SAFE, IN_MEMORY, VCR_BODY)]
    rows: list[Row] = []
    for name, size in _SIZES.items():

        def one(who: str, size: int = size) -> Samples:
            task, worker = (call_and_commit, PLAIN) if who == LEAST else (call, who)
            path = bench.path()
            return bench.ask(worker, task, url=url, size=size, calls=calls, path=path)

        rounds = bench.rounds(3 if bench.quick else 9, names, one)
        rows.extend(rows_of(f"{name}, wall time", "wall", rounds))
        rows.extend(rows_of(f"{name}, CPU", "cpu", rounds))
        rows.extend(_saving(f"{name}, saving", rounds))
    return Measurement(
        TITLE,
        "`+` is the difference to the plain client, median over the rounds. A durable recorder "
        "needs at least one commit per call (here bare SQLite, WAL, synchronous=FULL, as many "
        "bytes as the tape takes). Saving is the cost of leaving the session, per call.",
        rows,
    )


def rows_of(case: str, kind: str, rounds: Rounds, own_cpu: float = OWN_CPU_TARGET) -> Iterator[Row]:
    """Yield a row for each variant. Ours may take as much CPU as one commit and `own_cpu`."""
    least = _added(kind, rounds[LEAST], rounds[PLAIN])
    for who, found in rounds.items():
        spread = Spread.of([second * 1e6 for one in found for second in one[kind]])
        added = _added(kind, found, rounds[PLAIN])
        compared = "" if who == PLAIN else f"{added * 1e6:+,.0f} µs"
        if (who, kind) != (CORE, "cpu"):
            yield Row(case, who, spread, "µs", compared)
            continue
        target = f"≤ {(least + own_cpu) * 1e6:+,.0f} µs"
        yield Row(case, who, spread, "µs", compared, target, added <= least + own_cpu)


def _saving(case: str, rounds: Rounds) -> Iterator[Row]:
    for who, found in rounds.items():
        if who not in (PLAIN, LEAST):
            yield Row(case, who, Spread.of([s * 1e6 for one in found for s in one["save"]]), "µs")


def _added(kind: str, found: list[Samples], plain: list[Samples]) -> float:
    return statistics.median(
        statistics.median(mine[kind]) - statistics.median(theirs[kind])
        for mine, theirs in zip(found, plain, strict=True)
    )


def call(recorder: Recorder, url: str, size: int, calls: int, path: str) -> Samples:
    """Record calls on one warm connection; return wall time and CPU time of each, in seconds."""
    bodies = [_body(size, (path, i)) for i in range(calls + 1)]
    with recorder.record(Path(path)) as clients:
        with clients.sync() as client:
            samples = timed(lambda body: _post(client, url, body), bodies)
        began = time.perf_counter()
    return {**samples, "save": [(time.perf_counter() - began) / len(bodies)]}


def call_and_commit(recorder: Recorder, url: str, size: int, calls: int, path: str) -> Samples:
    """Make the same calls, each followed by a durable commit of both bodies' packed size."""
    bodies = [_body(size, (path, i)) for i in range(calls + 1)]
    with (
        recorder.record(Path(path)) as clients,
        clients.sync() as client,
        closing(sqlite3.connect(path, isolation_level=None)) as db,
    ):
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE blobs (id INTEGER PRIMARY KEY, data BLOB)")

        def once(body: bytes) -> None:
            _post(client, url, body)
            db.execute("INSERT INTO blobs (data) VALUES (?)", (body,))

        return timed(once, bodies)


def timed(once: Callable[[T], None], bodies: list[T]) -> Samples:
    """Return the wall time and the CPU time of each call but the first, in seconds."""
    wall, cpu = [], []
    for body in bodies:
        began, worked = time.perf_counter(), time.process_time()
        once(body)
        cpu.append(time.process_time() - worked)
        wall.append(time.perf_counter() - began)
    return {"wall": wall[1:], "cpu": cpu[1:]}  # The first one opened the connection.


def _post(client: httpx2.Client, url: str, body: bytes) -> None:
    client.post(f"{url}/v1/chat/completions", content=body).raise_for_status()


def _body(size: int, seed: object) -> bytes:
    message = {"role": "user", "content": f"@say {words(size, seed)}"}
    return json.dumps({"model": "gpt-5-mini", "messages": [message]}).encode()
