"""Measure how long it takes to write the report of a long run, and how large the page is."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

from bench import Bench, Samples
from recorders import CORE, Recorder
from table import Measurement, Row, Spread
from tape_access import add, new_writer
from tracefork_core import Tape
from tracefork_core.tape import Receipt

TITLE = "The report of a long run"
CASES = ("800 exchanges", "10,000 exchanges", "25,000 exchanges")
_SIZES = {800: 1.5, 10_000: 6.0, 25_000: 12.0}
"""The largest page in MB, by the number of exchanges."""
_LEAST_RATE = 5_000
_TURNS = 40
_SYSTEM = (
    "You are the desk of a travel agency. Look up what you need, then answer in one paragraph."
)
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool for {name.replace('_', ' ')}.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
    for name in ("search_flights", "search_hotels", "look_up_booking", "send_mail")
]


def measure(bench: Bench) -> Measurement:
    """Measure the report of three runs."""
    rows = []
    for many, largest in _SIZES.items():
        count = many // 10 if bench.quick else many
        found = bench.ask(CORE, write_report, many=count, path=bench.path())
        size, rate = Spread.of(found["MB"]), Spread.of(found["rate"])
        case = f"{count:,} exchanges"
        rows.append(
            Row(case, "size", size, "MB", "", f"≤ {largest} MB", met=size.median <= largest)
        )
        target, met = f"≥ {_LEAST_RATE:,}", rate.median >= _LEAST_RATE
        rows.append(Row(case, "written", rate, "exchanges/s", "", target, met=met))
    return Measurement(
        TITLE,
        f"Conversations of {_TURNS} questions with tools, one after another in one lane. Each "
        "question sends the whole conversation again; tools return about 600 characters.",
        rows,
    )


def write_report(recorder: Recorder, many: int, path: str) -> Samples:
    """Write the report of a run, three times."""
    from tracefork_core.cli.report.document import Report
    from tracefork_core.cli.report.packing import Parts
    from tracefork_core.cli.report.page import pieces
    from tracefork_core.cli.report.run_data import run_of

    tape_path = Path(path).with_suffix(".tape")
    write_run(tape_path, many)
    found: Samples = {"MB": [], "rate": []}
    for _ in range(3):
        began = time.perf_counter()
        parts = Parts()
        with Tape.open(tape_path) as tape:
            runs = [run_of(tape, parts, content=True)]
        page = b"".join(pieces(Report(title="", content=True, runs=runs), parts))
        found["rate"].append(many / (time.perf_counter() - began))
        found["MB"].append(len(page) / 1e6)
    return found


def write_run(path: Path, many: int) -> None:
    """Write a tape of many conversations."""
    writer = new_writer(path)
    for n, (asked, answered) in enumerate(conversations(many)):
        add(writer, n, asked, answered)
    writer.close(Receipt("", 0))


def conversations(many: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the requests and the answers of as many calls of a model."""
    chance = random.Random(0)
    words = [
        "".join(chance.choices("etaoinshrdlucmfwypvbgk", k=chance.randint(2, 9)))
        for _ in range(4_000)
    ]
    n = 0
    while True:
        history = [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": _text(chance, words, 30)},
        ]
        for turn in range(_TURNS):
            if n == many:
                return
            asked = {"model": "gpt-5-mini", "messages": history, "tools": _TOOLS}
            call = {
                "id": f"call_{n:024}",
                "type": "function",
                "function": {
                    "name": _TOOLS[turn % len(_TOOLS)]["function"]["name"],
                    "arguments": json.dumps({"query": _text(chance, words, 8)}),
                },
            }
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
            usage = {"prompt_tokens": 200 * turn + 90, "completion_tokens": 40}
            answered = {"id": f"chatcmpl-{n:024}", "choices": [choice], "usage": usage}
            yield json.dumps(asked).encode(), json.dumps(answered).encode()
            result = {"role": "tool", "tool_call_id": call["id"]}
            history += [message, {**result, "content": _text(chance, words, 90)}]
            n += 1


def _text(chance: random.Random, words: list[str], count: int) -> str:
    return " ".join(chance.choices(words, k=count))
