"""Measure `tracefork view`: how soon a row is seen, and how soon a large folder is listed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from bench import Bench, Samples
from comparing import questions
from recorders import CORE, Recorder
from table import Measurement, Row, Spread
from tape_access import add, new_writer
from tracefork_core.tape import Receipt

TITLE = "The live view"
CASES = ("50 steps/s", "1 GB folder")
_PER_SECOND = 50
_TAPES, _TAPE = 1_000, 1_000_000
_SOON, _LISTED = 250, 1


def measure(bench: Bench) -> Measurement:
    """Measure a run that is recorded while it is looked at, and a folder of 1,000 tapes."""
    before, more = (200, 100) if bench.quick else (1_000, 500)
    live = bench.ask(CORE, follow, before=before, more=more, folder=bench.path())
    listed = bench.ask(CORE, listing, tapes=100 if bench.quick else _TAPES, folder=bench.path())
    late = sorted(live["late"])
    worst = Spread.of([late[len(late) * 95 // 100]])
    names, read = Spread.of(listed["names"]), Spread.of(listed["read"])
    return Measurement(
        TITLE,
        f"A run of {before:,} exchanges gets {more} more, {_PER_SECOND} a second, while a viewer "
        "reads the events of its page. A row is late by the time from the commit of its exchange. "
        f"The folder holds {_TAPES:,} tapes of 1 MB.",
        [
            Row(CASES[0], "a row is late by", Spread.of(late), "ms"),
            Row(
                CASES[0],
                "95 of 100 by at most",
                worst,
                "ms",
                "",
                f"≤ {_SOON} ms",
                met=worst.median <= _SOON,
            ),
            Row(
                CASES[1], "all names", names, "s", "", f"≤ {_LISTED} s", met=names.median <= _LISTED
            ),
            Row(CASES[1], "all tapes read", read, "s"),
        ],
    )


def follow(recorder: Recorder, before: int, more: int, folder: str) -> Samples:
    """Return by how many milliseconds each row was late."""
    place = Path(folder)
    place.mkdir()
    writer = new_writer(place / "run.tape")
    items = list(questions(before + more, 0))
    for n in range(before):
        add(writer, n, *items[n])
    committed: dict[int, float] = {}
    late: list[float] = []
    ready = threading.Event()

    def look(told: Iterator[tuple[str, Any]]) -> None:
        seen = 0
        for name, data in told:
            if name != "growth" or data["growth"]["index"] is None:
                continue
            now, growth = time.perf_counter(), data["growth"]
            rows = growth["from"] + len(growth["index"]["kind"])
            late.extend((now - committed[n]) * 1e3 for n in range(seen, rows) if n in committed)
            seen = rows
            if seen >= before:
                ready.set()
            if seen == before + more:
                return

    with viewed(place) as client, client.stream("GET", "/api/run?tape=run.tape") as response:
        looking = threading.Thread(target=look, args=(events(response),))
        looking.start()
        assert ready.wait(60)
        began = time.perf_counter()
        for i in range(more):
            time.sleep(max(0.0, began + i / _PER_SECOND - time.perf_counter()))
            add(writer, before + i, *items[before + i])
            committed[before + i] = time.perf_counter()
        looking.join(60)
    writer.close(Receipt("", 0))
    assert len(late) == more
    return {"late": late}


def listing(recorder: Recorder, tapes: int, folder: str) -> Samples:
    """Return the seconds until all names of a folder are told, and until all tapes are read."""
    place = Path(folder)
    place.mkdir()
    first = place / "run-0.tape"
    writer = new_writer(first)
    n = 0
    while first.stat().st_size < _TAPE:
        add(writer, n, os.urandom(50_000), os.urandom(50_000))
        n += 1
    writer.close(Receipt("", 0))
    for i in range(1, tapes):
        os.link(first, place / f"run-{i}.tape")
    with viewed(place) as client:
        began = time.perf_counter()
        names: set[str] = set()
        found: Samples = {}
        with client.stream("GET", "/api/folder") as response:
            for _, data in events(response):
                names |= {entry["name"] for entry in data["entries"]}
                if len(names) == tapes:
                    found.setdefault("names", [time.perf_counter() - began])
                if not data["left"]:
                    return found | {"read": [time.perf_counter() - began]}
    raise AssertionError("the list did not end")


@contextmanager
def viewed(folder: Path) -> Iterator[httpx2.Client]:
    """Start a server for a folder, and come in."""
    words = [sys.executable, "-m", "tracefork_core", "view", str(folder), "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = ""
    while not told.endswith("}\n"):
        told += process.stdout.readline()
    address = json.loads(told)["address"]
    with httpx2.Client(base_url=address.partition("/?")[0], timeout=60) as client:
        client.get(address)
        yield client
    process.send_signal(signal.SIGTERM)
    process.communicate()


def events(response: httpx2.Response) -> Iterator[tuple[str, Any]]:
    """Yield the events of a stream."""
    name = ""
    for line in response.iter_lines():
        word, _, rest = line.partition(": ")
        if word == "event":
            name = rest
        elif word == "data":
            yield name, json.loads(rest)
