"""Measure the time to first token: from sending a request to the first word of its answer."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench import Bench, Samples
from peers import IN_MEMORY, VCR
from recorders import CORE, PLAIN, Recorder
from table import Measurement, Row, Spread

if TYPE_CHECKING:
    import httpx2

EVENT_SECONDS = 0.03
TARGET = 1.05
TITLE = "Time to first token while recording, 30 ms an event"
CASES = ("httpx2, sync", "httpx2, async", "openai SDK, sync", "openai SDK, async")
_MODEL = "gpt-5-mini"
_SAY = "@say streams stay live"


def measure(bench: Bench) -> Measurement:
    """Measure each recorder on a stream, sync and async, raw and through an SDK."""
    url = bench.provider(chunk_delay=EVENT_SECONDS)
    names = bench.present(PLAIN, CORE, IN_MEMORY, VCR)
    rows: list[Row] = []
    for client in CASES:

        def one(who: str, client: str = client) -> Samples:
            return bench.ask(who, stream, url=url, client=client, calls=4, path=bench.path())

        rounds = bench.rounds(3 if bench.quick else 9, names, one)
        rows.extend(_row(client, who, rounds[who], rounds[PLAIN]) for who in rounds)
    return Measurement(
        TITLE,
        "The connection is warm, and one event comes before the first word. Compared: the ratio "
        "to the plain client, median over the rounds.",
        rows,
    )


def _row(client: str, who: str, found: list[Samples], plain: list[Samples]) -> Row:
    ratios = (
        statistics.median(mine["seconds"]) / statistics.median(theirs["seconds"])
        for mine, theirs in zip(found, plain, strict=True)
    )
    ratio = statistics.median(ratios)
    spread = Spread.of([seconds * 1e3 for one in found for seconds in one["seconds"]])
    if who != CORE:
        return Row(client, who, spread, "ms", f"{ratio:.3f} x")
    return Row(client, who, spread, "ms", f"{ratio:.3f} x", f"≤ {TARGET} x", ratio <= TARGET)


def stream(recorder: Recorder, url: str, client: str, calls: int, path: str) -> Samples:
    """Record streams; return the seconds to the first word of each except the first stream."""
    url = f"{url}/v1"
    with recorder.record(Path(path)) as clients:
        match client:
            case "httpx2, sync":
                with clients.sync() as http:
                    seconds = [_raw(http, url) for _ in range(calls + 1)]
            case "openai SDK, sync":
                with clients.sync() as http:
                    seconds = _sdk(http, url, calls + 1)
            case "httpx2, async":
                seconds = asyncio.run(_raw_async(clients.asynchronous(), url, calls + 1))
            case _:
                seconds = asyncio.run(_sdk_async(clients.asynchronous(), url, calls + 1))
    return {"seconds": seconds[1:]}


def _body() -> dict[str, object]:
    return {"model": _MODEL, "messages": [{"role": "user", "content": _SAY}], "stream": True}


def _word(line: str) -> str | None:
    """Return the text in a line of an OpenAI chat completions stream, if there is some."""
    if not line.startswith("data: {"):
        return None
    text: str | None = json.loads(line.removeprefix("data: "))["choices"][0]["delta"].get("content")
    return text


def _raw(http: httpx2.Client, url: str) -> float:
    first = None
    began = time.perf_counter()
    with http.stream("POST", f"{url}/chat/completions", json=_body()) as response:
        for line in response.iter_lines():
            if first is None and _word(line):
                first = time.perf_counter()
    assert first is not None
    return first - began


async def _raw_async(http: httpx2.AsyncClient, url: str, calls: int) -> list[float]:
    found = []
    async with http:
        for _ in range(calls):
            first = None
            began = time.perf_counter()
            async with http.stream("POST", f"{url}/chat/completions", json=_body()) as response:
                async for line in response.aiter_lines():
                    if first is None and _word(line):
                        first = time.perf_counter()
            assert first is not None
            found.append(first - began)
    return found


def _sdk(http: httpx2.Client, url: str, calls: int) -> list[float]:
    import openai

    client = openai.OpenAI(base_url=url, api_key="none", http_client=http)
    found = []
    for _ in range(calls):
        first = None
        began = time.perf_counter()
        for event in client.chat.completions.create(
            model=_MODEL, messages=[{"role": "user", "content": _SAY}], stream=True
        ):
            if first is None and event.choices and event.choices[0].delta.content:
                first = time.perf_counter()
        assert first is not None
        found.append(first - began)
    return found


async def _sdk_async(http: httpx2.AsyncClient, url: str, calls: int) -> list[float]:
    import openai

    found = []
    async with openai.AsyncOpenAI(base_url=url, api_key="none", http_client=http) as client:
        for _ in range(calls):
            first = None
            began = time.perf_counter()
            async for event in await client.chat.completions.create(
                model=_MODEL, messages=[{"role": "user", "content": _SAY}], stream=True
            ):
                if first is None and event.choices and event.choices[0].delta.content:
                    first = time.perf_counter()
            assert first is not None
            found.append(first - began)
    return found
