"""A tape can be read while it is recorded: the reader sees one moment of it, and no damage."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape, TapeError
from tracefork_core.tape import Receipt, TapeWriter, journal, schema
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import ExchangeAside, ExchangePayload, RequestRecord, ResponseRecord
from tracefork_core.tape.log import LogReader
from tracefork_core.tape.rewrite import rewrite

from .runs import Bodies, put, write


def bodies(exchanges: int, size: int = 20_000) -> list[Bodies]:
    drawn = random.Random(exchanges)
    return [(drawn.randbytes(size), drawn.randbytes(size)) for _ in range(exchanges)]


class Recording:
    """Exchanges that begin and end one after another."""

    def __init__(self, path: Path) -> None:
        self.writer = TapeWriter(path, describe())
        self._begun: list[tuple[ExchangePayload, ExchangeAside]] = []

    def begin(self) -> None:
        body = random.Random(len(self._begun)).randbytes(20_000)
        n = len(self._begun)
        request = RequestRecord("POST", "https://model.test/", [], sha256(body).hexdigest())
        self._begun.append((ExchangePayload(n, request), ExchangeAside("main", "test", n)))
        self.writer.begin(*self._begun[n], body)

    def end(self) -> None:
        payload, aside = self._begun[-1]
        response = ResponseRecord(200, "OK", [], sha256(b"said").hexdigest())
        aside.sizes, aside.turns, aside.end = [4], [[2 * payload.n, 2]], "eof"
        self.writer.end(ExchangePayload(payload.n, payload.request, response), aside, b"said")


@pytest.fixture
def recording(tape: Path) -> Iterator[Recording]:
    """Record to a tape, with one exchange in flight."""
    begun = Recording(tape)
    begun.begin()
    yield begun
    begun.writer.abort()


def once(doing: Callable[[], None], reading: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reader that calls `doing` after its first read."""
    left = [doing]

    def read(*args: Any) -> Any:
        found = list(reading(*args))
        if left:
            left.pop()()
        return found

    return read


@pytest.mark.parametrize(("what", "name"), [(journal, "read"), (LogReader, "segments")])
def test_an_exchange_that_lands_during_a_read_is_read(
    tape: Path, recording: Recording, monkeypatch: pytest.MonkeyPatch, what: object, name: str
) -> None:
    """Between the reads of journal and log, an exchange ends and the next one begins."""

    def go_on() -> None:
        recording.end()
        recording.begin()

    monkeypatch.setattr(what, name, once(go_on, getattr(what, name)))
    with Tape.open(tape) as read:
        ends = [exchange.end for exchange in read.exchanges]
        assert ends == (["eof"] if what is journal else ["open"])
        assert len(read.exchanges[0].request_body) == 20_000
    with Tape.open(tape) as read:
        assert [exchange.end for exchange in read.exchanges] == ["eof", "open"]


def test_a_tape_that_grew_after_it_was_opened_is_read(tape: Path) -> None:
    """Small rows are packed into one row that is larger than the whole tape was."""
    writer = TapeWriter(tape, describe())
    small = bodies(1, size=10)
    put(writer, small)
    with Tape.open(tape) as read:
        larger = bodies(6)
        put(writer, larger, first=1)
        found = [(one.request_body, one.response_body) for one in read.exchanges]
        assert found == [*small, *larger]
        put(writer, bodies(5), first=7)  # The segment is full now, and is packed.
        assert read.blob(sha256(larger[0][0]).hexdigest()) == larger[0][0]
    writer.abort()


def test_a_tape_can_be_opened_while_its_recording_begins(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look finds half of a file, and the next one all of it, with its log."""
    writer = TapeWriter(tape.with_name("whole.tape"), describe())
    whole = tape.with_name("whole.tape")
    tape.write_bytes(whole.read_bytes()[:1024])
    check = schema._check

    def lay_out() -> None:
        for suffix in ("", "-wal"):
            schema.beside(tape, suffix).write_bytes(schema.beside(whole, suffix).read_bytes())

    def check_and_lay_out(*args: Any, **options: Any) -> None:
        try:
            check(*args, **options)
        except Exception:
            lay_out()
            raise

    monkeypatch.setattr(schema, "_check", check_and_lay_out)
    with Tape.open(tape) as read:
        assert (read.complete, read.exchanges) == (False, [])
    writer.abort()


def test_half_of_a_tape_is_refused(tape: Path) -> None:
    """Negative control: no recording completes it."""
    TapeWriter(tape, describe()).abort()
    tape.write_bytes(tape.read_bytes()[:1024])
    with pytest.raises(TapeError, match=r"\.tape"):
        Tape.open(tape)


READER = """
import sys
from tracefork_core import Tape
print("ready", flush=True)
while not (tape := Tape.open(sys.argv[1])).complete:
    with tape:
        sum(len(one.request_body) + len(one.response_body) for one in tape.exchanges)
with tape:
    print(len(tape.exchanges))
"""


def test_another_process_reads_the_tape_throughout_a_recording(tape: Path) -> None:
    """It reads as fast as it can, from the first exchange to the end."""
    writer = TapeWriter(tape, describe())
    command = [sys.executable, "-c", READER, str(tape)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        for n, one in enumerate(bodies(150, size=3_000)):
            put(writer, [one], first=n)
        writer.close(Receipt(digest="", exchanges=0))
        assert reader.communicate(timeout=60)[0] == "150\n"
    assert reader.returncode == 0


def test_a_tape_that_was_killed_as_it_was_closed_is_read(tape: Path) -> None:
    """It has a journal of SQLite's, which only a writer could roll back."""
    writer = TapeWriter(tape, describe())
    put(writer, bodies(3))
    writer.close(Receipt(digest="", exchanges=0))
    with closing(sqlite3.connect(tape, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size=1")  # So that SQLite writes its journal at once.
        db.execute("BEGIN IMMEDIATE")
        db.execute("DELETE FROM log")
        hot = schema.beside(tape, "-journal").read_bytes()
        db.execute("ROLLBACK")
    schema.beside(tape, "-journal").write_bytes(hot)
    with pytest.raises(TapeError, match="readonly database"):
        schema._opened(tape, immutable=False)
    with Tape.open(tape) as read:
        assert (read.complete, len(read.exchanges)) == (True, 3)


def test_an_unreadable_log_is_named_in_the_error(tape: Path) -> None:
    """In a read-only folder, say, the tape itself is not damaged."""
    writer = TapeWriter(tape, describe())
    copy = tape.with_name("copy.tape")
    for suffix in ("", "-wal"):
        schema.beside(copy, suffix).write_bytes(schema.beside(tape, suffix).read_bytes())
    writer.abort()
    schema.beside(copy, "-shm").symlink_to("nowhere")  # SQLite follows no symbolic link.
    with pytest.raises(TapeError, match=r"copy\.tape-wal"):
        Tape.open(copy)


@pytest.fixture
def killed(tape: Path) -> list[Path]:
    """Return the files left by a killed recording whose tape was removed."""
    dead = tape.with_name("dead.tape")
    writer = TapeWriter(dead, describe())
    put(writer, bodies(2, size=10))
    left = [tape.with_name(tape.name + suffix) for suffix in ("-wal", "-shm", "-flight")]
    for suffix, file in zip(("-wal", "-shm", "-flight"), left, strict=True):
        file.write_bytes(schema.beside(dead, suffix).read_bytes())
    writer.abort()
    return left


@pytest.mark.usefixtures("killed")
def test_a_log_that_another_recording_left_is_not_read(tape: Path) -> None:
    """A closed tape has replaced one whose recording was killed."""
    closed = tape.with_name("closed.tape")
    write(closed, bodies(3))
    closed.rename(tape)
    for _ in range(2):
        with Tape.open(tape) as read:
            assert (read.complete, len(read.exchanges)) == (True, 3)


def test_the_log_of_a_tape_that_was_not_closed_is_read(tape: Path) -> None:
    """Negative control: the whole recording may be in the log."""
    writer = TapeWriter(tape, describe())
    put(writer, bodies(3))
    with Tape.open(tape) as read:
        assert (read.complete, len(read.exchanges)) == (False, 3)
    writer.abort()


@pytest.mark.parametrize("complete", [True, False])
def test_a_rewritten_tape_has_no_log_of_another_recording(
    tape: Path, killed: list[Path], complete: bool
) -> None:
    """Readers use the side files of a tape that was cut off, so none may be there."""
    source = tape.with_name("source.tape")
    writer = TapeWriter(source, describe())
    put(writer, bodies(1))
    if complete:
        writer.close(Receipt(digest="", exchanges=0))
    with Tape.open(source) as read:
        rewrite(read, tape)
    if not complete:
        writer.abort()
    assert [file for file in killed if file.exists()] == []
    with Tape.open(tape) as read:
        assert (read.complete, len(read.exchanges)) == (complete, 1)
