"""Measure how long it takes to compare two long runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from bench import Bench, Samples
from recorders import CORE, Recorder
from table import Measurement, Row, Spread
from tape_access import add, new_writer
from tracefork_core import Tape, diff
from tracefork_core.tape import Receipt

TITLE = "Comparing two runs"
CASES = ("10,000 exchanges",)
_MOST_SECONDS = 2
_ROUNDS = 5
_CHANGES = ("one more", "one less", "one word", "all ids new")
_READ = "reading both"


def measure(bench: Bench) -> Measurement:
    """Measure a comparison beside reading the bodies of both tapes."""
    many = 1_000 if bench.quick else 10_000
    found = bench.ask(CORE, compare, many=many, folder=bench.path())
    limit = Spread.of(found[_READ])
    rows = [Row(f"{many:,} exchanges", _READ, limit, "s")]
    for change in _CHANGES:
        spread = Spread.of(found[change])
        compared = f"{spread.median / limit.median:.2f} x"
        target, met = f"≤ {_MOST_SECONDS} s", spread.median <= _MOST_SECONDS
        if change == _CHANGES[-1]:  # Every body of both runs is decoded then.
            rows.append(Row(f"{many:,} exchanges", change, spread, "s", compared))
        else:
            rows.append(Row(f"{many:,} exchanges", change, spread, "s", compared, target, met=met))
    return Measurement(
        TITLE,
        "Two runs of the same questions to a model, in one lane. The second has one exchange more "
        "or less in its middle, or another word in one answer, or was recorded again, so that each "
        "answer has another id. Reading both decodes no body.",
        rows,
    )


def compare(recorder: Recorder, many: int, folder: str) -> Samples:
    """Compare a run with four others."""
    found: Samples = {name: [] for name in (_READ, *_CHANGES)}
    first = Path(folder).with_name(f"{Path(folder).name}-first.tape")
    _write(first, questions(many, 0))
    middle = many // 2
    for change in _CHANGES:
        items = list(questions(many, int(change == "all ids new")))
        if change == "one more":
            items.insert(middle, next(questions(1, 2)))
        elif change == "one less":
            del items[middle]
        elif change == "one word":
            asked, answered = items[middle]
            items[middle] = asked, answered.replace(b"It is", b"It was")
        second = first.with_name(f"{first.stem}-{_CHANGES.index(change)}.tape")
        _write(second, items)
        expected = 0 if change == "all ids new" else 1
        for _ in range(_ROUNDS):
            began = time.perf_counter()
            assert len(diff(first, second).findings) == expected
            found[change].append(time.perf_counter() - began)
            began = time.perf_counter()
            for path in (first, second):
                with Tape.open(path) as tape:
                    for exchange in tape.exchanges:
                        _ = exchange.request_body, exchange.response_body
            found[_READ].append(time.perf_counter() - began)
    return found


def questions(many: int, series: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield questions to a model and their answers, as bodies."""
    for n in range(many):
        text = f"What is {n} squared?" if series < 2 else "What is that?"
        asked = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": text}]}
        message = {"role": "assistant", "content": f"It is {n * n}."}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answered = {"id": f"chatcmpl-{series}{n:012}", "created": 1, "choices": [choice]}
        yield json.dumps(asked).encode(), json.dumps(answered).encode()


def _write(path: Path, items: Iterator[tuple[bytes, bytes]] | list[tuple[bytes, bytes]]) -> None:
    writer = new_writer(path)
    for n, (asked, answered) in enumerate(items):
        add(writer, n, asked, answered)
    writer.close(Receipt("", 0))
