"""Measure what `tracefork proxy` adds: the latency of a call, and the time to first token."""

from __future__ import annotations

import http.client
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench import Bench, Samples, clean_environment
from table import Measurement, Row, Spread

TITLE = "A call through the proxy"
DIRECT, RECORDED = "direct", "tracefork proxy record"
_EVENT_SECONDS = 0.03
_CALL, _TOKEN = "a call of 1 kB", "first token"
_AT_ONCE = (1, 64)
CASES = (_CALL, *(f"{_TOKEN}, {count} at a time" for count in _AT_ONCE))
_MOST = {_CALL: 1.5, f"{_TOKEN}, 1 at a time": 3.0}
"""Milliseconds that the proxy may add."""
_BODY = (
    b'{"model": "gpt-5-mini", "stream": true, "messages": '
    b'[{"role": "user", "content": "@say streams stay live"}]}'
)
_JSON = {"content-type": "application/json"}


def measure(bench: Bench) -> Measurement:
    """Measure calls and streams, direct and through a recording proxy, in turns."""
    rows: list[Row] = []
    rounds = 3 if bench.quick else 9
    with _proxied(bench, bench.provider()) as urls:

        def calls(who: str) -> Samples:
            return {"seconds": _calls(urls[who], 50 if bench.quick else 200)}

        rows += _rows(_CALL, bench.rounds(rounds, urls, calls))
    with _proxied(bench, bench.provider(chunk_delay=_EVENT_SECONDS)) as urls:
        for count in _AT_ONCE:

            def streams(who: str, count: int = count) -> Samples:
                return {"seconds": _at_once(urls[who], count)}

            rows += _rows(f"{_TOKEN}, {count} at a time", bench.rounds(rounds, urls, streams))
    return Measurement(
        TITLE,
        "A client of Python's http.client on warm connections, and a scripted provider on this "
        f"machine whose streams wait {_EVENT_SECONDS * 1e3:.0f} ms between events. `+` is the "
        "difference to the direct call, median over the rounds.",
        rows,
    )


def _rows(case: str, rounds: dict[str, list[Samples]]) -> Iterator[Row]:
    middles = {
        who: [statistics.median(one["seconds"]) * 1e3 for one in found]
        for who, found in rounds.items()
    }
    for who, found in middles.items():
        if who == DIRECT:
            yield Row(case, who, Spread.of(found), "ms")
            continue
        added = statistics.median(
            mine - theirs for mine, theirs in zip(found, middles[DIRECT], strict=True)
        )
        most = _MOST.get(case)
        aim, met = ("", None) if most is None else (f"≤ +{most} ms", added <= most)
        yield Row(case, who, Spread.of(found), "ms", f"+{added:.2f} ms", aim, met)


def _calls(url: str, count: int) -> list[float]:
    connection, path = _connected(url)
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        connection.request("GET", f"{path}/bytes/1000")
        connection.getresponse().read()
        seconds.append(time.perf_counter() - began)
    connection.close()
    return seconds


def _at_once(url: str, count: int) -> list[float]:
    """Return the seconds to the first word of each of so many streams at a time."""
    seconds: list[float] = []
    ready = threading.Barrier(count)

    def stream() -> None:
        connection, path = _connected(url)
        for warm in (True, False):
            ready.wait()
            began = time.perf_counter()
            connection.request("POST", f"{path}/v1/chat/completions", _BODY, _JSON)
            response = connection.getresponse()
            response.readline()
            if not warm:
                seconds.append(time.perf_counter() - began)
            response.read()
        connection.close()

    threads = [threading.Thread(target=stream) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seconds


def _connected(url: str) -> tuple[http.client.HTTPConnection, str]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return http.client.HTTPConnection(parts.hostname, parts.port), parts.path


@contextmanager
def _proxied(bench: Bench, url: str) -> Iterator[dict[str, str]]:
    """Run a recording proxy; yield the base URL of the provider for each variant."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tracefork_core", "proxy", "record", bench.path()],
        env={**clean_environment(), "ANTHROPIC_BASE_URL": url},
        cwd=Path(bench.folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    address = next(line for line in lines if "ANTHROPIC_BASE_URL=" in line)
    try:
        yield {DIRECT: url, RECORDED: address.strip().partition("=")[2]}
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
