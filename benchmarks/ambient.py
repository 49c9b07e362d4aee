"""Measure what it costs to record the clock and randomness of a run."""

from __future__ import annotations

import datetime as dt
import json
import random
import secrets
import statistics
import sys
import time
import timeit
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path

from bench import Bench, Rounds, Samples
from recorders import CORE, Recorder
from table import Measurement, Row, Spread
from words import words

SHARE_TARGET = 1.03
READ_TARGET = 2e-6
_ON, _OFF = "on the tape", "left real"
_ALONE = "time-machine alone"
"""Its patch and a ticking clock: the least that a clock built on time-machine can cost."""
_LEAST = "time-machine, with call sites"
"""Its patch, and a clock that notes the time and the function that reads it, while a guard listens:
the least that a clock kept by call site can cost, without lanes, a session or a replay."""
_DRAWS: dict[str, Callable[[], object]] = {
    "time.time": lambda: time.time(),  # noqa: PLW0108 - looked up when it is called
    "datetime.now": lambda: dt.datetime.now(dt.UTC),
    "uuid4": lambda: uuid.uuid4(),  # noqa: PLW0108
    "secrets.token_hex": lambda: secrets.token_hex(8),
    "random.random": lambda: random.random(),  # noqa: PLW0108
    "random.choice": lambda: random.choice("abcdef"),
}
_READS = ("time.time", "datetime.now")
TITLE = "Clock and randomness on the tape"
_STREAMED = "recording streams"
_EVENT = 1e-3
"""Seconds between two events of a stream; a model takes thirty times as long."""
CASES = ("recording", _STREAMED, "replay", *_DRAWS)


def measure(bench: Bench) -> Measurement:
    """Measure a long run with and without, recorded and replayed, and single draws."""
    n = 100 if bench.quick else 1_000
    given: dict[str, object] = {"url": bench.provider(), "n": n}
    tapes = {who: bench.path() for who in (_ON, _OFF)}
    for who, tape in tapes.items():
        bench.ask(CORE, record, path=tape, on=who == _ON, **given)

    def recorded(who: str) -> Samples:
        return bench.ask(CORE, record, path=bench.path(), on=who == _ON, **given)

    def streamed(who: str) -> Samples:
        url = bench.provider(_EVENT)
        path = bench.path()
        return bench.ask(CORE, record, path=path, on=who == _ON, url=url, n=n, streamed=True)

    def replayed(who: str) -> Samples:
        return bench.ask(CORE, replay, path=tapes[who], on=who == _ON, **given)

    def drawn(who: str) -> Samples:
        if who == _ALONE:
            return bench.ask(CORE, read)
        if who == _LEAST:
            return bench.ask(CORE, note, path=bench.path())
        return bench.ask(CORE, draw, path=bench.path(), on=who == _ON)

    times = 3 if bench.quick else 7
    return Measurement(
        TITLE,
        f"A run of {n:,} exchanges of 1 KB, with a clock read, an id and a random choice for each; "
        "and single draws. Times are the process's own CPU time, against a provider that answers "
        f"at once. For streams, with {_EVENT * 1e3:g} ms between events, they are wall time. "
        "Compared, as medians over the rounds: the ratio to the run whose clock and randomness "
        "are left real, and the time that tracefork adds to a draw.",
        [
            *_runs("recording", "cpu", bench.rounds(times, tapes, recorded), SHARE_TARGET),
            *_runs(_STREAMED, "wall", bench.rounds(3, tapes, streamed), SHARE_TARGET),
            *_runs("replay", "cpu", bench.rounds(times, tapes, replayed), None),
            *_draws(bench.rounds(times, [*tapes, _LEAST, _ALONE], drawn)),
        ],
    )


def _runs(case: str, kind: str, rounds: Rounds, target: float | None) -> Iterator[Row]:
    for who, found in rounds.items():
        spread = Spread.of([one[kind][0] * 1e3 for one in found])
        ratio = statistics.median(
            mine[kind][0] / real[kind][0] for mine, real in zip(found, rounds[_OFF], strict=True)
        )
        if who == _OFF:
            yield Row(case, who, spread, "ms")
        elif target is None:
            yield Row(case, who, spread, "ms", f"{ratio:.3f} x")
        else:
            yield Row(case, who, spread, "ms", f"{ratio:.3f} x", f"< {target} x", ratio < target)


def _draws(rounds: Rounds) -> Iterator[Row]:
    for name in _DRAWS:
        for who, found in rounds.items():
            if name not in found[0]:
                continue
            spread = Spread.of([one[name][0] * 1e6 for one in found])
            more = statistics.median(
                mine[name][0] - real[name][0]
                for mine, real in zip(found, rounds[_OFF], strict=True)
            )
            if who == _OFF:
                yield Row(name, who, spread, "µs")
            elif name in _READS and who == _ON:
                target = f"< {READ_TARGET * 1e6:+.0f} µs"
                yield Row(
                    name, who, spread, "µs", f"{more * 1e6:+.2f} µs", target, more < READ_TARGET
                )
            else:
                yield Row(name, who, spread, "µs", f"{more * 1e6:+.2f} µs")


def record(
    recorder: Recorder, url: str, n: int, path: str, *, on: bool, streamed: bool = False
) -> Samples:
    """Record a run with draws; return its CPU time and wall time in seconds."""
    import tracefork_core

    with tracefork_core.record(path, clock=on, entropy=on):
        return _run(url, n, streamed=streamed)


def replay(recorder: Recorder, url: str, n: int, path: str, *, on: bool) -> Samples:
    """Replay that run; return its CPU time and wall time in seconds."""
    import tracefork_core

    with tracefork_core.replay(path, clock=on, entropy=on):
        return _run(url, n)


def draw(recorder: Recorder, path: str, *, on: bool) -> Samples:
    """Return the seconds of one draw of each kind: the smallest of many tries."""
    import tracefork_core

    with tracefork_core.record(Path(path), clock=on, entropy=on):
        return _least(_DRAWS)


def read(recorder: Recorder) -> Samples:
    """Return the seconds of one clock read that only time-machine has patched."""
    import time_machine

    with time_machine.travel(dt.datetime.now(dt.UTC), tick=True):
        return _least(_READS)


def note(recorder: Recorder, path: str) -> Samples:
    """Return the seconds of one read of a clock that only notes the reader and the time."""
    import time_machine

    import tracefork_core

    with (
        tracefork_core.record(Path(path), clock=False, entropy=False),  # Its guard listens.
        time_machine.travel(dt.datetime.now(dt.UTC)),
    ):
        around = time_machine.traveller_stack[-1]
        time_machine.traveller_stack[-1] = _Noting()  # type: ignore[call-overload]
        try:
            return _least(_READS)
        finally:
            time_machine.traveller_stack[-1] = around


class _Noting:
    """A clock with the interface that time-machine expects."""

    def __init__(self) -> None:
        self._original_ns = import_module("_time_machine").original_time_ns
        self._noted: deque[tuple[str, int]] = deque(maxlen=1_000)

    def time_ns(self) -> int:
        frame = sys._getframe(1)
        now: int = self._original_ns()
        name = f"{frame.f_globals['__name__']}:{frame.f_code.co_qualname}"
        self._noted.append((name, now))
        return now


def _least(names: Iterable[str]) -> Samples:
    times = 2_000
    return {
        name: [min(timeit.repeat(_DRAWS[name], number=times, repeat=9)) / times] for name in names
    }


def _run(url: str, n: int, *, streamed: bool = False) -> Samples:
    import httpx2

    asked: dict[str, object] = {"model": "gpt-5-mini", "stream": streamed}
    bodies = [
        json.dumps({**asked, "messages": [{"role": "user", "content": text}]})
        for text in (words(1_000, i) for i in range(n))
    ]
    with httpx2.Client() as client:
        began, worked = time.perf_counter(), time.process_time()
        for body in bodies:
            # Drawn and not sent, so that a run with real randomness replays too.
            dt.datetime.now(dt.UTC), uuid.uuid4(), random.choice("abcdef")
            client.post(f"{url}/v1/chat/completions", content=body).raise_for_status()
        wall, cpu = time.perf_counter() - began, time.process_time() - worked
        return {"cpu": [cpu], "wall": [wall]}
