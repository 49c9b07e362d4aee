"""Measure how many exchanges a second one client replays, and whether the rate stays flat."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench import Bench, Rounds, Samples
from peers import IN_MEMORY, VCR_BODY
from recorders import CORE, PLAIN, Recorder
from table import Measurement, Row, Spread
from words import words

TARGET = 8_000
FLAT = 0.9
_LONGEST_SECONDS = 2.0
_ALL = (PLAIN, CORE, IN_MEMORY, VCR_BODY)
_SHORT, _TARGETED, _LONG = "400 x 1 KB", "1,600 x 1 KB", "6,400 x 1 KB"
_CASES = (
    (_SHORT, 400, 1_000, _ALL),
    (_TARGETED, 1_600, 1_000, _ALL),
    ("100 x 100 KB", 100, 100_000, _ALL),
    (_LONG, 6_400, 1_000, (PLAIN, CORE)),
)
TITLE = "Replay through one client, exchanges a second"
CASES = tuple(case for case, *_ in _CASES)


def measure(bench: Bench) -> Measurement:
    """Measure each recorder on short and long tapes of small and large bodies."""
    rows: list[Row] = []
    targets = {_TARGETED: float(TARGET)}
    for case, n, size, who in _CASES[: 2 if bench.quick else None]:
        names = bench.present(*who)
        tapes = {name: bench.path() for name in names}
        given: dict[str, object] = {"url": bench.provider(), "size": size, "n": n}
        for name in names[1:]:
            bench.ask(name, record, path=tapes[name], **given)

        def one(
            who: str, tapes: dict[str, str] = tapes, given: dict[str, object] = given
        ) -> Samples:
            longest = _LONGEST_SECONDS if who == VCR_BODY else None
            return bench.ask(who, replay, path=tapes[who], longest=longest, **given)

        rounds = bench.rounds(2 if bench.quick else 5, names, one)
        rows.extend(_rows(case, rounds, targets.get(case)))
        if case == _SHORT:
            targets[_LONG] = FLAT * _median(rounds[CORE], "rate")
    return Measurement(
        TITLE,
        "Rates are per second of the process's own CPU time: a replay does not wait, and other "
        "processes use this machine. Compared: the rate as a share of the limit, which is the "
        "plain client answered by a mock transport; the rate by the wall clock; the time to open "
        "and close the tape, which is in neither rate. vcrpy is stopped after "
        f"{_LONGEST_SECONDS:.0f} s.",
        rows,
    )


def _rows(case: str, rounds: Rounds, target: float | None) -> Iterator[Row]:
    for who, found in rounds.items():
        spread = Spread.of([one["rate"][0] for one in found])
        share = spread.median / _median(rounds[PLAIN], "rate")
        wall, around = _median(found, "wall_rate"), _median(found, "around") * 1e3
        compared = f"{share:.2f} x, wall {wall:,.0f}, {around:,.0f} ms"
        if who == CORE and target is not None:
            met = spread.median >= target
            yield Row(case, who, spread, "/s", compared, f"≥ {target:,.0f} /s", met)
        else:
            yield Row(case, who, spread, "/s", compared)


def _median(found: list[Samples], kind: str) -> float:
    return statistics.median(one[kind][0] for one in found)


def record(recorder: Recorder, url: str, size: int, n: int, path: str) -> Samples:
    """Record the exchanges that `replay` replays."""
    with recorder.record(Path(path)) as clients, clients.sync() as client:
        for body in _bodies(size, n):
            client.post(f"{url}/v1/chat/completions", content=body).raise_for_status()
    return {}


def replay(
    recorder: Recorder, url: str, size: int, n: int, path: str, longest: float | None
) -> Samples:
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
                if longest is not None and ended - began > longest:
                    break
            worked = time.process_time() - worked
        closing = time.perf_counter()
    closed = time.perf_counter()
    return {
        "rate": [done / worked],
        "wall_rate": [done / (ended - began)],
        "around": [began - opening + closed - closing],
    }


def _bodies(size: int, n: int) -> list[bytes]:
    """Return requests with texts of `size` bytes; each answer is as long."""
    return [
        json.dumps(
            {
                "model": "gpt-5-mini",
                "messages": [{"role": "user", "content": f"@say {words(size, i)}"}],
            }
        ).encode()
        for i in range(n)
    ]
