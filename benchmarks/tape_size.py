"""Measure the size of a tape when every step sends the whole transcript again."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from bench import Bench, Samples
from peers import IN_MEMORY, VCR
from recorders import CORE, PLAIN, Recorder
from table import Measurement, Row, Spread
from words import words

if TYPE_CHECKING:
    from types import ModuleType

    import httpx2

_NEW_BYTES = 512
_URL = "https://api.openai.com/v1/chat/completions"
_PEERS_UP_TO = 200  # More takes them minutes.
CLOSED = f"{CORE}, closed"
_FOLDED = f"{CORE}, live"
_LYING = f"{CORE}, all files"
_TARGETS = {CLOSED: 0.5, _FOLDED: 0.8}
_EXPONENT = 1.05
TITLE = "Tape of a transcript that grows"
CASES = ("50 steps", "200 steps", "800 steps", "exponent")


def measure(bench: Bench) -> Measurement:
    """Measure the tape of an agent of 50, 200 and 800 steps, and how it grows."""
    rows: list[Row] = []
    grown: dict[str, list[tuple[float, float]]] = {}
    for steps in (50, 200) if bench.quick else (50, 200, 800):
        raw, unique = _measures(steps)
        sizes = {"sent and received": raw, "new bytes of that": unique, **_sizes(bench, steps)}
        for who, size in sizes.items():
            rows.append(_row(f"{steps} steps", who, size, unique))
            grown.setdefault(who, []).append((size, unique))
    for who in (CLOSED, _FOLDED):
        (before, less), (after, more) = grown[who][-2:]
        exponent = math.log(after / before) / math.log(more / less)
        target, met = f"≤ {_EXPONENT}", exponent <= _EXPONENT
        rows.append(Row("exponent", who, Spread.of([exponent]), "", "", target, met))
    return Measurement(
        TITLE,
        "Each step adds about 1 KB and sends everything before it again. The limit: the same "
        "bodies in one zstd stream with a long window. Live: a recording that was not closed, "
        "with SQLite's log merged in. All files: every file of such a recording, with the index "
        "of the log (32 KB). Exponent: how the size grows with the new bytes, between the last "
        "two; 1 is linear, 2 would mean that each step stores everything again.",
        rows,
    )


def _sizes(bench: Bench, steps: int) -> dict[str, float]:
    sizes = {
        "zstd, body by body": bench.ask(PLAIN, body_by_body, steps=steps)["bytes"][0],
        "the limit": bench.ask(PLAIN, limit, steps=steps)["bytes"][0],
    }
    samples = bench.ask(CORE, tape, steps=steps, path=bench.path())
    sizes |= {_LYING: samples["lying"][0], _FOLDED: samples["folded"][0]}
    sizes[CLOSED] = samples["bytes"][0]
    if steps <= _PEERS_UP_TO:
        for who in bench.present(IN_MEMORY, VCR):
            sizes[who] = bench.ask(who, tape, steps=steps, path=bench.path())["bytes"][0]
    return sizes


def _row(case: str, who: str, size: float, unique: float) -> Row:
    per_byte = size / unique
    target = _TARGETS.get(who)
    return Row(
        case,
        who,
        Spread.of([size / 1e6]),
        "MB",
        f"{per_byte:.2f} per new byte",
        f"≤ {target}" if target else "",
        per_byte <= target if target else None,
    )


def tape(recorder: Recorder, steps: int, path: str) -> Samples:
    """Record the steps; return the bytes of the closed tape, and of its files just before."""
    import httpx2

    waiting: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        kind = {"content-type": "application/json"}
        return httpx2.Response(200, headers=kind, content=waiting.pop())

    target = Path(path)
    transport = httpx2.MockTransport(answer)
    with recorder.record(target) as clients, clients.sync(transport) as client:
        for asked, answered in exchanges(steps):
            waiting.append(answered)
            client.post(_URL, content=asked)
        lying = _total(target)
        folded = _folded(target)
    return {"bytes": [_total(target)], "lying": [lying], "folded": [folded]}


def body_by_body(recorder: Recorder, steps: int) -> Samples:
    """Return the size of all bodies, each compressed alone."""
    zstd = _zstd()
    return {"bytes": [sum(len(zstd.compress(part, 3)) for part in _parts(steps))]}


def limit(recorder: Recorder, steps: int) -> Samples:
    """Return the size of all bodies in one zstd stream with a window for everything."""
    zstd = _zstd()
    options = {
        zstd.CompressionParameter.compression_level: 3,
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
    }
    stream = zstd.ZstdCompressor(options=options)
    size = sum(len(stream.compress(part)) for part in _parts(steps))
    return {"bytes": [size + len(stream.flush())]}


def exchanges(steps: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the request and the answer of each step."""
    messages: list[dict[str, str]] = []
    for step in range(steps):
        messages.append({"role": "user", "content": words(_NEW_BYTES, ("user", step))})
        request = json.dumps({"model": "gpt-5-mini", "messages": messages}).encode()
        message = {"role": "assistant", "content": words(_NEW_BYTES, ("model", step))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": f"chatcmpl-{step}", "object": "chat.completion", "choices": [choice]}
        yield request, json.dumps(answer).encode()
        messages.append(message)


def _total(target: Path) -> float:
    return sum(file.stat().st_size for file in target.parent.glob(f"{target.name}*"))


def _folded(target: Path) -> float:
    """Return the size of a copy of a live recording, with its log merged in."""
    copy = target.with_name(f"copy-of-{target.name}")
    if not target.is_file():
        return 0
    for suffix in ("", "-wal", "-flight"):
        file = target.with_name(target.name + suffix)
        if file.is_file():
            shutil.copy(file, copy.with_name(copy.name + suffix))
    with closing(sqlite3.connect(copy)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return _total(copy)


def _measures(steps: int) -> tuple[float, float]:
    """Return how many bytes were sent and received, and how many of them were new."""
    raw = answers = last = 0
    for request, answer in exchanges(steps):
        raw += len(request) + len(answer)
        answers += len(answer)
        last = len(request)
    return raw, last + answers


def _parts(steps: int) -> Iterator[bytes]:
    for exchange in exchanges(steps):
        yield from exchange


def _zstd() -> ModuleType:
    """Return the zstd module, which the peers' environment lacks."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
