"""Hostile files: a file that is not ours is left alone, and a crafted one is refused."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import tracefork_core as tracefork
from tracefork_core.adapters import SavedCheckpoint, checkpoints
from tracefork_core.checkpoints.store import CheckpointFile
from tracefork_core.tape.log import LogReader, LogWriter

from .conftest import body_of, grow, put, transcript, value, write


@pytest.fixture
def held(store: CheckpointFile, path: Path) -> Path:
    """Return a closed file with one thread."""
    grow(store, transcript(6))
    store.close()
    return path


def craft(path: Path, *queries: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for query in queries:
        db.execute(query)
    db.close()


def test_a_file_of_threads_is_not_read_as_a_tape(held: Path) -> None:
    """Opening it as a tape, or recording over it, says what it holds and leaves it as it is."""
    before = held.read_bytes()
    with pytest.raises(tracefork.TapeError):
        tracefork.Tape.open(held)
    with pytest.raises(tracefork.UsageError):
        with tracefork.record(held):
            pass
    with pytest.raises(tracefork.TapeError):
        with tracefork.record(held, overwrite=True):
            pass
    assert held.read_bytes() == before


def test_a_store_reads_a_tape_but_does_not_write_to_it(path: Path) -> None:
    """The checkpoints on the tape are read, and putting one says what to do instead."""
    with tracefork.record(path):
        pass
    before = path.read_bytes()
    store = CheckpointFile(path)
    assert list(store.search()) == []
    with pytest.raises(tracefork.UsageError):
        put(store, "1", said=b"x")
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"plain text, no database" * 99, None])
def test_a_foreign_file_is_not_touched(path: Path, content: bytes | None) -> None:
    """An empty file, a text and another program's database stay as they are."""
    if content is None:
        craft(path, "CREATE TABLE mine (a)")
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    for action in (lambda s: s.find("t", ""), lambda s: put(s, "1", said=b"x")):
        with pytest.raises(tracefork.TapeError):
            action(CheckpointFile(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("PRAGMA user_version=1002", "1002"),
        ("CREATE TABLE more (a)", "more"),
        ("CREATE VIEW v AS SELECT 1", "view `v`"),
        ("CREATE TRIGGER t AFTER INSERT ON threads BEGIN SELECT 1; END", "trigger `t`"),
        ("ALTER TABLE threads ADD COLUMN more", "threads"),
    ],
)
def test_another_schema_is_refused(held: Path, query: str, words: str) -> None:
    """A later version, and tables, triggers or columns that are not tracefork's."""
    craft(held, query)
    with pytest.raises(tracefork.TapeError):
        CheckpointFile(held).find("t", "")


def pieces(*found: list[int]) -> str:
    return f"x'{msgspec.msgpack.encode(list(found)).hex()}'"


LAST = "WHERE id = (SELECT max(id) FROM bodies WHERE base IS NOT NULL)"


@pytest.mark.parametrize(
    "query",
    [
        f"UPDATE bodies SET size = 1 << 40 {LAST}",
        f"UPDATE bodies SET size = -1 {LAST}",
        f"UPDATE bodies SET size = 0, pieces = x'90' {LAST}",
        f"UPDATE bodies SET size = 'x' {LAST}",
        f"UPDATE bodies SET base = id {LAST}",
        f"UPDATE bodies SET base = id + 1 {LAST}",
        f"UPDATE bodies SET base = 99 {LAST}",
        f"UPDATE bodies SET data = NULL {LAST}",
        f"UPDATE bodies SET data = zeroblob(99) {LAST}",
        f"UPDATE bodies SET pieces = {pieces([0, 1 << 30], [1])} {LAST}",
        f"UPDATE bodies SET pieces = {pieces([-5, 5])} {LAST}",
        f"UPDATE bodies SET pieces = {pieces([1, 2, 3])} {LAST}",
        f"UPDATE bodies SET pieces = {pieces([1 << 50])}, size = 1 << 50 {LAST}",
        f"UPDATE bodies SET pieces = x'00' {LAST}",
        f"UPDATE bodies SET sha = zeroblob(32) {LAST}",
        f"UPDATE bodies SET thread = 7 {LAST}",
        "UPDATE bodies SET data = zeroblob(length(data)) WHERE base IS NULL",
        "UPDATE bodies SET sha = 'text ' || id",
        "UPDATE bodies SET tag = x'ff'",
        "UPDATE checkpoints SET parent = x'ff' WHERE id = '0005'",
        "UPDATE checkpoints SET made = x'ff' WHERE id = '0005'",
        "UPDATE checkpoints SET channels = x'81a1' WHERE id = '0005'",
        "UPDATE checkpoints SET head = 12345 WHERE id = '0005'",
        "UPDATE checkpoints SET metadata = '[1]' WHERE id = '0005'",
        "UPDATE checkpoints SET metadata = x'ff' WHERE id = '0005'",
    ],
)
def test_a_crafted_row_is_refused(held: Path, query: str) -> None:
    """No size, chain, piece or reference is trusted: one error, and little memory."""
    craft(held, query)
    with pytest.raises(tracefork.TapeError):
        body_of(CheckpointFile(held), "0005", "messages")


@pytest.mark.parametrize("column", ["task", "idx", "path", "channel"])
def test_a_crafted_write_is_refused(held: Path, column: str) -> None:
    """A name must be text and a number must be a number."""
    store = CheckpointFile(held)
    write(store, "0005", b"pending")
    store.close()
    craft(held, f"UPDATE writes SET {column} = x'ff'")
    with pytest.raises(tracefork.TapeError):
        store.writes("t", "", "0005")


def test_a_bomb_is_not_unpacked(held: Path) -> None:
    """A frame that claims to hold a thousand times its size or more is not unpacked."""
    bomb = bytes(64 * 1024 * 1024)
    from tracefork_core.tape.frames import pack

    frame = pack(bomb)
    craft(
        held,
        f"UPDATE bodies SET size = {len(bomb)}, base = NULL, pieces = NULL, "
        f"data = x'{frame.hex()}' {LAST}",
    )
    with pytest.raises(tracefork.TapeError):
        body_of(CheckpointFile(held), "0005", "messages")


@pytest.mark.parametrize(
    ("count", "more"),
    [
        (131_073, [0, 0]),
        (131_000, [1 << 60, 0]),
        (70_000, [0]),
    ],
)
def test_empty_pieces_count_against_the_limit(held: Path, count: int, more: list[int]) -> None:
    """They take memory and time although they add no byte to the value."""
    db = sqlite3.connect(held, isolation_level=None)
    ((packed,),) = db.execute(f"SELECT pieces FROM bodies {LAST}")
    db.close()
    crafted = pieces(*msgspec.msgpack.decode(packed), *[more] * count)
    craft(held, f"UPDATE bodies SET pieces = {crafted} {LAST}")
    with pytest.raises(tracefork.TapeError):
        body_of(CheckpointFile(held), "0005", "messages")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (rb'"msgpack","[0-9a-f]{64}"', b'"msgpack","zz"'),
        (rb'"made":\d+', b'"made":' + b"9" * 30),
        (rb'"made":\d+', b'"made":-' + b"9" * 30),
    ],
)
def test_a_crafted_event_is_refused(path: Path, old: bytes, new: bytes) -> None:
    """Addresses and times are checked, so code that reads checkpoints need not check them."""
    with tracefork.record(path):
        head = value(b"head")
        one = SavedCheckpoint("t", "", "1", head, {}, made=10**18)
        checkpoints(path).put(one, {head.sha: b"head"})
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        log = LogReader(db)
        found = [(text, log.bodies(n)) for n, text in log.segments()]
        db.execute("DELETE FROM log")
        for text, bodies in found:
            writer = LogWriter(db)
            writer.append(re.sub(old, new, text), [bodies])
            writer.pack()
    with tracefork.Tape.open(path) as tape, pytest.raises(tracefork.TapeError, match="Expected"):
        tape.checkpoints  # noqa: B018
