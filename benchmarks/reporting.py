"""Measure the report of a long run: its size, how fast it is written, how soon it can be used."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench import Bench, Samples, command
from conversations import RARE, TURNS, conversations
from peers import IN_MEMORY, TIMEFORK
from recorders import CORE, Recorder
from report_page import chromium, open_other, open_ours
from report_peers import record_run, share
from table import Measurement, Row, Spread
from tape_access import add, new_writer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TITLE = "The report of a long run"
CASES = ("800 exchanges", "10,000 exchanges", "25,000 exchanges")
_SIZES = {800: 1.5, 10_000: 6.0, 25_000: 12.0}
"""The largest page in MB, by the number of exchanges."""
_LEAST_RATE = 5_000
_AIMS = {"first row": 1.0, "interactive": 2.0, "first hit": 0.3, "heap": 150.0, "rows": 300.0}
_UNITS = {"heap": "MB", "rows": "rows", "loaded": "s"}
_ROUNDS = 3


def measure(bench: Bench) -> Measurement:
    """Measure the reports of three runs, and those of other tools of the shortest one."""
    rows: list[Row] = []
    with chromium() as browser:
        for many, largest in _SIZES.items():
            count = many // 10 if bench.quick else many
            rows += _ours(bench, browser, count, largest)
            if many == min(_SIZES):
                rows += _others(bench, browser, count)
        method = (
            f"Conversations of {TURNS} questions with tools, one after another in one lane. Each "
            "question sends the whole conversation again; tools return about 500 characters, in "
            "words as frequent as in a natural language. A page opens at its last exchange. "
            "Interactive: a key has moved to another exchange, and its messages are shown. First "
            "hit: of a word that one tool result holds. Heap: of the page after a collection, "
            "without its worker."
        )
        if browser is None:
            method += " There was no Chromium, or no playwright: no page was opened."
    return Measurement(TITLE, method, rows)


def _ours(bench: Bench, browser: Browser | None, many: int, largest: float) -> Iterator[Row]:
    case, page = f"{many:,} exchanges", Path(bench.path()).with_suffix(".html")
    found = bench.ask(CORE, write_report, many=many, path=str(page))
    size, rate = Spread.of(found["MB"]), Spread.of(found["rate"])
    who = f"{CORE}, "
    yield Row(case, CORE, size, "MB", "size", f"≤ {largest} MB", size.median <= largest)
    target, met = f"≥ {_LEAST_RATE:,}/s", rate.median >= _LEAST_RATE
    yield Row(case, f"{who}written", rate, "exchanges/s", "", target, met)
    if browser is None:
        return
    opened = [open_ours(browser, page, many - 1, RARE) for _ in range(_ROUNDS)]
    for name, most in _AIMS.items():
        spread = Spread.of([one[name] for one in opened])
        unit = _UNITS.get(name, "s")
        aim = f"≤ {most:g} {unit}"
        yield Row(case, f"{who}{name}", spread, unit, "", aim, spread.median <= most)


def _others(bench: Bench, browser: Browser | None, many: int) -> Iterator[Row]:
    case = f"{many:,} exchanges"
    for who in (IN_MEMORY, TIMEFORK) if bench.present(IN_MEMORY) else ():
        page, python = Path(bench.path()).with_suffix(".html"), bench.python[IN_MEMORY]
        if who == TIMEFORK:
            share(python, many, page)
        else:
            tape = bench.path()
            bench.ask(who, record_run, many=many, path=tape)
            words = ("report", "--tape", tape, "--output", str(page))
            command(python, bench.folder, *words)
        yield Row(case, who, Spread.of([page.stat().st_size / 1e6]), "MB", "size")
        if browser is None:
            continue
        opened = [open_other(browser, page) for _ in range(_ROUNDS)]
        for name in ("loaded", "heap"):
            spread = Spread.of([one[name] for one in opened])
            yield Row(case, f"{who}, {name}", spread, _UNITS[name])


def write_report(recorder: Recorder, many: int, path: str) -> Samples:
    """Write a tape, and its report three times, as `tracefork report` does."""
    from tracefork_core.cli.report import assembly, page_file
    from tracefork_core.cli.report.family import Shown
    from tracefork_core.cli.report.packing import Parts
    from tracefork_core.tape import Receipt

    page = Path(path)
    tape = page.with_suffix(".tape")
    writer = new_writer(tape)
    for n, (asked, answered) in enumerate(conversations(many)):
        add(writer, n, asked, answered)
    writer.close(Receipt("", 0))
    found: Samples = {"MB": [], "rate": []}
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        parts = Parts()
        page_file.write(page, assembly.of_family(Shown([tape], {}, []), parts), parts)
        found["rate"].append(many / (time.perf_counter() - began))
        found["MB"].append(page.stat().st_size / 1e6)
    return found
