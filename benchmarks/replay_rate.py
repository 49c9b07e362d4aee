"""How many exchanges a second are replayed through one client, and whether that stays flat."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench import Bench, Rounds, Samples
from peers import IN_MEMORY, VCR, VCR_BODY
from recorders import CORE, PLAIN, Recorder
from table import Measurement, Row, Spread
from words import words

TARGET = 8_000
_LONGEST_SECONDS = 3.0
_ALL = (PLAIN, CORE, IN_MEMORY, VCR, VCR_BODY)
_CASES = (
    ("400 x 1 KB", 400, 1_000, _ALL),
    ("1,600 x 1 KB", 1_600, 1_000, _ALL),
    ("100 x 100 KB", 100, 100_000, _ALL),
    ("6,400 x 1 KB", 6_400, 1_000, (PLAIN, CORE)),
)


def measure(bench: Bench) -> Measurement:
    """Measure everybody on short and long tapes of small and large bodies."""
    rows: list[Row] = []
    for case, n, size, who in _CASES[: 2 if bench.quick else None]:
        everybody = bench.present(*who)
        tapes = {name: bench.path() for name in everybody}
        given: dict[str, object] = {"url": bench.provider(), "size": size, "n": n}
        for name in everybody[1:]:
            bench.ask(name, record, path=tapes[name], **given)

        def one(
            who: str, tapes: dict[str, str] = tapes, given: dict[str, object] = given
        ) -> Samples:
            return bench.ask(who, replay, path=tapes[who], **given)

        rows.extend(_rows(case, bench.rounds(2 if bench.quick else 7, everybody, one)))
    return Measurement(
        "Replay through one httpx2.Client, exchanges a second",
        "A second of the process's own CPU time: nothing is waited for, and others use this "
        "machine. Compared: with the plain client, which a mock transport answers; the rate by the "
        "wall clock; what it takes to open and close the tape, not in the rates. "
        f"Who needs more than {_LONGEST_SECONDS:.0f} s is cut off there.",
        rows,
    )


def _rows(case: str, rounds: Rounds) -> Iterator[Row]:
    limit = statistics.median(one["rate"][0] for one in rounds[PLAIN])
    for who, found in rounds.items():
        spread = Spread.of([one["rate"][0] for one in found])
        wall = statistics.median(one["wall_rate"][0] for one in found)
        around = statistics.median(one["open"][0] + one["close"][0] for one in found) * 1e3
        share = f"{spread.median / limit:.2f} x"
        compared = f"{share}, wall {wall:,.0f}, {around:,.0f} ms"
        if who == CORE:
            yield Row(case, who, spread, "/s", compared, f"≥ {TARGET:,}", spread.median >= TARGET)
        else:
            yield Row(case, who, spread, "/s", compared)


def record(recorder: Recorder, url: str, size: int, n: int, path: str) -> Samples:
    """Record exchanges to be replayed."""
    with recorder.record(Path(path)) as clients, clients.sync() as client:
        for body in _bodies(size, n):
            client.post(f"{url}/v1/chat/completions", content=body).raise_for_status()
    return {}


def replay(recorder: Recorder, url: str, size: int, n: int, path: str) -> Samples:
    """Replay them; return exchanges a second, and the seconds to open and close the tape."""
    bodies = _bodies(size, n)
    done = 0
    opening = time.perf_counter()
    with recorder.replay(Path(path)) as clients:
        with clients.sync() as client:
            worked, began = time.process_time(), time.perf_counter()
            ended = began
            for body in bodies:
                client.post(f"{url}/v1/chat/completions", content=body).raise_for_status()
                done += 1
                ended = time.perf_counter()
                if ended - began > _LONGEST_SECONDS:
                    break
            worked = time.process_time() - worked
        closing = time.perf_counter()
    closed = time.perf_counter()
    return {
        "rate": [done / worked],
        "wall_rate": [done / (ended - began)],
        "open": [began - opening],
        "close": [closed - closing],
    }


def _bodies(size: int, n: int) -> list[bytes]:
    """Return requests of `size` bytes; the answer to each is as long."""
    return [
        json.dumps(
            {
                "model": "gpt-5-mini",
                "messages": [{"role": "user", "content": f"@say {words(size, i)}"}],
            }
        ).encode()
        for i in range(n)
    ]
