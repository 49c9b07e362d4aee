"""Measure what it costs to report runs to logs, traces and metrics."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import Bench, Samples
from recorders import CORE, Recorder
from table import Measurement, Row, Spread
from words import words

TITLE = "Reports to logs, traces and metrics"
_ON, _OFF = "reported", "not reported"
_SHORT, _LONG = 1, 200
CASES = tuple(f"{what}, {n} x 1 KB" for what in ("recording", "replay") for n in (_SHORT, _LONG))
_MOST = 1.05


def measure(bench: Bench) -> Measurement:
    """Measure short and long runs with and without reports."""
    times = 3 if bench.quick else 15
    rows = [
        row
        for task, what in ((record, "recording"), (replay, "replay"))
        for n in (_SHORT, _LONG)
        for row in _rows(bench, task, f"{what}, {n} x 1 KB", n, times)
    ]
    return Measurement(
        TITLE,
        "CPU time of a whole `with` block, reported to a logger of structlog that writes JSON and "
        "to providers of OpenTelemetry's SDK that keep spans and metrics in memory. The time to "
        "send them is that of your exporter. Compared, as the median over the rounds: the ratio "
        "to the same block without reports.",
        rows,
    )


def _rows(
    bench: Bench, task: Callable[..., Samples], case: str, n: int, times: int
) -> Iterator[Row]:
    given: dict[str, object] = {"url": bench.provider(), "n": n}
    recorded = bench.path()
    bench.ask(CORE, record, path=recorded, on=False, **given)

    def one(who: str) -> Samples:
        path = recorded if task is replay else bench.path()
        return bench.ask(CORE, task, path=path, on=who == _ON, **given)

    rounds = bench.rounds(times, (_OFF, _ON), one)
    for who, samples in rounds.items():
        spread = Spread.of([each["cpu"][0] * 1e3 for each in samples])
        if who == _OFF:
            yield Row(case, who, spread, "ms")
            continue
        ratio = statistics.median(
            mine["cpu"][0] / plain["cpu"][0]
            for mine, plain in zip(samples, rounds[_OFF], strict=True)
        )
        if n == _LONG:
            yield Row(case, who, spread, "ms", f"{ratio:.3f} x", f"≤ {_MOST} x", met=ratio <= _MOST)
        else:
            yield Row(case, who, spread, "ms", f"{ratio:.3f} x")


def record(recorder: Recorder, url: str, n: int, path: str, *, on: bool) -> Samples:
    """Record a run; return its CPU time in seconds."""
    import tracefork_core

    return _timed(lambda: tracefork_core.record(path), url, n, on=on)


def replay(recorder: Recorder, url: str, n: int, path: str, *, on: bool) -> Samples:
    """Replay that run; return its CPU time in seconds."""
    import tracefork_core

    return _timed(lambda: tracefork_core.replay(path), url, n, on=on)


def _timed(block: Callable[[], object], url: str, n: int, *, on: bool) -> Samples:
    import httpx2

    bodies = [
        json.dumps({"model": "gpt-5-mini", "messages": [{"role": "user", "content": text}]})
        for text in (words(1_000, i) for i in range(n))
    ]
    with httpx2.Client() as client, _reports(on=on):
        began = time.process_time()
        with block():  # type: ignore[attr-defined]
            for body in bodies:
                client.post(f"{url}/v1/chat/completions", content=body).raise_for_status()
        return {"cpu": [time.process_time() - began]}


@contextmanager
def _reports(*, on: bool) -> Iterator[None]:
    """Report what runs inside, if `on`."""
    import structlog
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from tracefork_core import observe

    with Path("observing.jsonl").open("w") as lines:
        logs = structlog.wrap_logger(
            structlog.WriteLogger(lines), processors=[structlog.processors.JSONRenderer()]
        )
        tracing = TracerProvider()
        tracing.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
        meters = MeterProvider([InMemoryMetricReader()])
        if on:
            observe(logs=logs, tracer_provider=tracing, meter_provider=meters)
        try:
            yield
        finally:
            observe()
