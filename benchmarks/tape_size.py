"""How large a tape is when every step sends the whole transcript again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench import Bench, Samples
from peers import IN_MEMORY, VCR
from recorders import CORE, PLAIN, Recorder
from table import Measurement, Row, Spread
from words import words

if TYPE_CHECKING:
    import httpx2

_NEW_BYTES = 512
_URL = "https://api.openai.com/v1/chat/completions"


def measure(bench: Bench) -> Measurement:
    """Measure the tape of an agent of 50 and of 200 steps."""
    rows = []
    for steps in (50, 200):
        raw, unique = _measures(_exchanges(steps))
        sizes = {"sent and received": raw, "new in that": unique}
        sizes["the limit"] = bench.ask(PLAIN, limit, steps=steps)["bytes"][0]
        for who in bench.present(CORE, IN_MEMORY, VCR):
            sizes[who] = bench.ask(who, tape, steps=steps, path=bench.path())["bytes"][0]
        for who, size in sizes.items():
            compared = f"{size / unique:.2f} per new byte"
            rows.append(Row(f"{steps} steps", who, Spread.of([size / 1e6]), "MB", compared))
    return Measurement(
        "Tape of a transcript that grows",
        "Each step adds about 1 KB and sends everything before it again. The limit: the same "
        "bodies in one zstd stream with a long window.",
        rows,
    )


def tape(recorder: Recorder, steps: int, path: str) -> Samples:
    """Record the steps and return the bytes of the files left behind."""
    import httpx2

    exchanges = _exchanges(steps)
    answers = iter([answer for _, answer in exchanges])

    def answer(request: httpx2.Request) -> httpx2.Response:
        kind = {"content-type": "application/json"}
        return httpx2.Response(200, headers=kind, content=next(answers))

    target = Path(path)
    transport = httpx2.MockTransport(answer)
    with recorder.record(target) as clients, clients.sync(transport) as client:
        for request, _ in exchanges:
            client.post(_URL, content=request)
    return {"bytes": [sum(file.stat().st_size for file in target.parent.glob(f"{target.name}*"))]}


def limit(recorder: Recorder, steps: int) -> Samples:
    """Return the bytes of all bodies in one zstd stream that remembers everything."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: 3,
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
    }
    bodies = b"".join(part for exchange in _exchanges(steps) for part in exchange)
    return {"bytes": [len(zstd.compress(bodies, options=options))]}


def _measures(exchanges: list[tuple[bytes, bytes]]) -> tuple[float, float]:
    """Return how many bytes crossed, and how many of them were new."""
    raw = sum(len(request) + len(answer) for request, answer in exchanges)
    return raw, len(exchanges[-1][0]) + sum(len(answer) for _, answer in exchanges)


def _exchanges(steps: int) -> list[tuple[bytes, bytes]]:
    messages: list[dict[str, str]] = []
    exchanges = []
    for step in range(steps):
        messages.append({"role": "user", "content": words(_NEW_BYTES, ("user", step))})
        request = json.dumps({"model": "gpt-5-mini", "messages": messages}).encode()
        message = {"role": "assistant", "content": words(_NEW_BYTES, ("model", step))}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": f"chatcmpl-{step}", "object": "chat.completion", "choices": [choice]}
        exchanges.append((request, json.dumps(answer).encode()))
        messages.append(message)
    return exchanges
