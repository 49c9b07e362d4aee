"""Measure reading, appending and forking on large tapes."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from bench import Bench, Samples
from recorders import CORE, Recorder
from table import Measurement, Row, Spread
from tape_size import exchanges, tape
from tracefork_core.tape import Receipt, Tape, TapeWriter
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import (
    ExchangeAside,
    ExchangePayload,
    RequestRecord,
    ResponseRecord,
)
from tracefork_core.tape.file import TapeFile

_ACCESSES = 50
_LAST = 100
_TAIL = 3
TITLE = "Access to a tape that has grown"
CASES = ("800 steps", "10,000 exchanges", "1,000 forks")
_PATH = "https://api.openai.com/v1/chat/completions"


def measure(bench: Bench) -> Measurement:
    """Measure opening, listing, random access, appending and a thousand forks."""
    steps, many, forks = (200, 2_000, 100) if bench.quick else (800, 10_000, 1_000)
    path = bench.path()
    size = bench.ask(CORE, tape, steps=steps, path=path)["bytes"][0]
    grown, long = f"{steps} steps", f"{many:,} exchanges"
    looked = bench.ask(CORE, look, path=path)
    listed = bench.ask(CORE, listing, many=many, path=bench.path())
    added = bench.ask(CORE, append, steps=steps, path=bench.path())["appended"]
    branched = bench.ask(CORE, fork, path=path, forks=forks, folder=bench.path())
    total = sum(branched["bytes"])
    return Measurement(
        TITLE,
        f"Random access reads the bodies of {_ACCESSES} requests, on an open tape, and opening it "
        f"each time. Appending writes both halves of each of the last {_LAST} exchanges, without "
        "fsync (SQLite's synchronous=OFF), to measure tracefork's own part. A fork leaves the "
        f"run at a random exchange, changes its last message and sends {_TAIL} requests.",
        [
            _row(grown, "open", looked["open"]),
            _row(grown, "a request", looked["request"]),
            _row(grown, "open, and a request", looked["cold"]),
            _row(grown, "append an exchange", added),
            _row(long, "open", listed["open"]),
            _row(long, "open, and list them", listed["list"]),
            _row(f"{forks:,} forks", "make one", branched["fork"]),
            Row(
                f"{forks:,} forks",
                "all their files",
                Spread.of([total / 1e6]),
                "MB",
                f"{total / size:.1f} x the run, {total / forks / 1e3:.1f} KB each",
            ),
        ],
    )


def _row(case: str, who: str, seconds: Sequence[float]) -> Row:
    milliseconds = sorted(1e3 * one for one in seconds)
    p95 = milliseconds[round(0.95 * (len(milliseconds) - 1))]
    mean = statistics.fmean(milliseconds)
    compared = f"mean {mean:.1f}, p95 {p95:.1f}, max {milliseconds[-1]:.1f} ms"
    return Row(case, who, Spread.of(milliseconds), "ms", compared)


def look(recorder: Recorder, path: str) -> Samples:
    """Open a tape, and read random requests of it."""
    chance = random.Random(0)
    found: Samples = {"open": [], "request": [], "cold": []}
    with Tape.open(path) as opened:
        places = [chance.randrange(len(opened.exchanges)) for _ in range(_ACCESSES)]
        for n in places:
            began = time.perf_counter()
            _ = opened.exchanges[n].request_body
            found["request"].append(time.perf_counter() - began)
    for n in places:
        began = time.perf_counter()
        with Tape.open(path) as opened:
            found["open"].append(time.perf_counter() - began)
            _ = opened.exchanges[n].request_body
        found["cold"].append(time.perf_counter() - began)
    return found


def listing(recorder: Recorder, many: int, path: str) -> Samples:
    """Open a tape of many small exchanges and list them."""
    writer = new_writer(Path(path))
    for n in range(many):
        add(writer, n, b'{"question": %d}' % n, b'{"answer": %d}' % n)
    writer.close(Receipt("", 0))
    found: Samples = {"open": [], "list": []}
    for _ in range(9):
        began = time.perf_counter()
        with Tape.open(path) as opened:
            found["open"].append(time.perf_counter() - began)
            assert len(opened.exchanges) == many
        found["list"].append(time.perf_counter() - began)
    return found


def append(recorder: Recorder, steps: int, path: str) -> Samples:
    """Return the seconds it takes to append each of the last exchanges."""
    writer = new_writer(Path(path))
    seconds = []
    for n, (asked, answered) in enumerate(exchanges(steps)):
        began = time.perf_counter()
        add(writer, n, asked, answered)
        seconds.append(time.perf_counter() - began)
    writer.close(Receipt("", 0))
    return {"appended": seconds[-_LAST:]}


def fork(recorder: Recorder, path: str, forks: int, folder: str) -> Samples:
    """Fork a run at random exchanges, a few exchanges each; return times and bytes."""
    chance = random.Random(0)
    found: Samples = {"fork": [], "bytes": []}
    environment = describe()
    with Tape.open(path) as parent:
        steps = len(parent.exchanges)
        for number in range(forks):
            at = chance.randrange(steps - _TAIL)
            # A branch lies beside its parent.
            target = Path(path).with_name(f"{Path(folder).name}-{number}")
            began = time.perf_counter()
            writer = TapeWriter(target, environment, parent=parent, at=at)
            for exchange in islice(parent.exchanges, at, at + _TAIL):
                asked = exchange.request_body[:-3] + b' Or fork %d?"}]}' % number
                add(writer, exchange.n, asked, b"An answer to %d." % number)
            writer.close(Receipt("", 0))
            found["fork"].append(time.perf_counter() - began)
            found["bytes"].append(target.stat().st_size)
    with Tape.open(target) as last:
        assert last.exchanges[at].request_body.endswith(b' Or fork %d?"}]}' % number)
    return found


def new_writer(path: Path) -> TapeWriter:
    """Return a writer that does not wait for the disk."""
    writer = TapeWriter(path, describe())
    # The wait for the disk is not measured here; there is no public way to leave it out.
    assert isinstance(writer._file, TapeFile)
    writer._file._db.execute("PRAGMA synchronous=OFF")
    return writer


def add(writer: TapeWriter, n: int, asked: bytes, answered: bytes) -> None:
    """Write one exchange."""
    request = RequestRecord("POST", _PATH, [("content-type", "application/json")], sha256(asked))
    aside = ExchangeAside("main", "benchmark", time.time_ns(), sizes=[len(answered)], end="eof")
    writer.begin(ExchangePayload(n, request), aside, asked)
    response = ResponseRecord(200, "OK", [("content-type", "application/json")], sha256(answered))
    writer.end(ExchangePayload(n, request, response), aside, answered)
