"""Mutants of tapes, as damage, a foreign program or an attacker would make them.

Each mutant is drawn with a seed, so that its number is enough to make it again.
"""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from typing import Any

from mutant_events import (  # type: ignore[import-not-found]  # beside this script
    RAW,
    Files,
    break_a_blob,
    change_a_document,
    double,
    many,
    opened,
    shuffle_events,
    store,
)

_PAGE = 1024
ODD: tuple[Any, ...] = (
    None, "", "text", b"", b"\xff\x00", 1.5, 1e300, -1, 0, 2**31, 2**63 - 1, -(2**63), "\ud7ff\x1b"
)  # fmt: skip


def mutant(original: Files, number: int) -> tuple[str, Files]:
    """Mutate a tape; return what was done, and the mutated files."""
    chance = random.Random(f"mutant {number}")
    files = dict(original)
    kind = chance.choice(_BYTES) if chance.random() < 0.35 else chance.choice(_STRUCTURED)
    kind(files, chance)
    return kind.__name__, files


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────


def flip(files: Files, chance: random.Random) -> None:
    name, data = _some(files, chance)
    for _ in range(chance.choice((1, 1, 4, 64))):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    files[name] = bytes(data)


def flip_in_the_header(files: Files, chance: random.Random) -> None:
    data = bytearray(files[""])
    data[chance.randrange(min(len(data), 600))] = chance.choice((0, 1, 127, 128, 255))
    files[""] = bytes(data)


def truncate(files: Files, chance: random.Random) -> None:
    name, data = _some(files, chance)
    files[name] = bytes(data[: chance.randrange(len(data) + 1)])


def insert(files: Files, chance: random.Random) -> None:
    name, data = _some(files, chance)
    place, length = chance.randrange(len(data) + 1), chance.choice((1, 7, _PAGE, 5000))
    piece = chance.choice((chance.randbytes(length), bytes(data[place : place + length])))
    files[name] = bytes(data[:place]) + piece + bytes(data[place:])


def blank(files: Files, chance: random.Random) -> None:
    name, data = _some(files, chance)
    start = chance.randrange(len(data) + 1)
    length = min(chance.choice((1, 16, _PAGE, 8 * _PAGE)), len(data) - start)
    data[start : start + length] = bytes([chance.choice((0, 255))]) * length
    files[name] = bytes(data)


def swap_pages(files: Files, chance: random.Random) -> None:
    data = bytearray(files[""])
    one, other = (chance.randrange(len(data) // _PAGE) * _PAGE for _ in range(2))
    held = data[one : one + _PAGE]
    data[one : one + _PAGE] = data[other : other + _PAGE]
    data[other : other + _PAGE] = held
    files[""] = bytes(data)


def lose_a_file(files: Files, chance: random.Random) -> None:
    name = chance.choice(sorted(files))
    files[name] = b"" if chance.random() < 0.5 or not name else chance.randbytes(3000)


def _some(files: Files, chance: random.Random) -> tuple[str, bytearray]:
    name = chance.choice(sorted(files))
    return name, bytearray(files[name])


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


def odd_value(files: Files, chance: random.Random) -> None:
    """Store a value of a wrong type: SQLite allows that, even against NOT NULL."""
    with closing(opened(files)) as db:
        tables = db.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql NOT NULL"
        ).fetchall()
        table, sql = chance.choice(tables)
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        _let_anything_in(db, table, sql.replace(" NOT NULL", ""))
        column, value = chance.choice(columns), chance.choice(ODD)
        rows = "" if chance.random() < 0.3 else "WHERE random() % 3 = 0"
        try:
            if chance.random() < 0.15:  # Bytes that are not UTF-8.
                db.execute(f"UPDATE {table} SET {column} = CAST(x'ff1b80' AS TEXT) {rows}")
            else:
                db.execute(f"UPDATE {table} SET {column} = ? {rows}", (value,))
        except sqlite3.Error:
            return
        _let_anything_in(db, table, sql)
        store(files, db)


def odd_meta(files: Files, chance: random.Random) -> None:
    """Change an entry about the whole tape: its mode, key or parents."""
    key = chance.choice(("state", "mode", "key", "origin", "origin", "structure", "checksum", "x"))
    parents: dict[str, Any] = {
        "name": chance.choice(("run.tape", "../x.tape", "x.tape", "\x1b[2J", "x" * 5000))
    }
    parents |= {"at": chance.choice((0, 1, -1, 2**63, 10**30)), "digest": "0" * 64}
    parents |= {"line": chance.choice(([], ["x.tape"], ["y.tape"] * 100_000))}
    words = ("complete", "sealed", "metadata", "raw", "recording", b"\xff", *ODD[1:])
    documents = (json.dumps(parents).encode(), *(raw.encode() for raw in RAW))
    value = chance.choice(words if chance.random() < 0.5 else documents)
    with closing(opened(files)) as db:
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
        store(files, db)


def odd_pragma(files: Files, chance: random.Random) -> None:
    """Change what the SQLite header says about the file."""
    pragma = chance.choice(("user_version", "application_id", "schema_version", "auto_vacuum"))
    with closing(opened(files)) as db:
        db.execute(f"PRAGMA {pragma} = {chance.choice((-1, 0, 1, 2, 3, 7, 2**31 - 1))}")
        store(files, db)


def huge_row(files: Files, chance: random.Random) -> None:
    """Make the rows many, or empty, or one of them large."""
    with closing(opened(files)) as db:
        count = chance.choice((10_000, 30_000))
        insert = "INSERT INTO log SELECT value + 1000, {0}, 0, x'', x'' FROM generate"
        generate = f"WITH RECURSIVE generate(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM generate LIMIT {count}) "  # noqa: E501
        match chance.randrange(4):
            case 0:
                db.execute(generate + insert.format("0"))
            case 1:
                db.execute(generate + insert.format("value"))
            case 2:
                db.execute("UPDATE log SET events = zeroblob(500000) WHERE seq = 1")
            case 3:
                db.execute("UPDATE log SET bodies = zeroblob(500000) WHERE seq = 1")
        store(files, db)


def lie_in_the_journal(files: Files, chance: random.Random) -> None:
    """Give frames of the journal other sizes, turns, numbers and documents."""
    frames = files.get("-flight", b"").split(b"\n")
    if len(frames) < 2:
        frames = [b'{"n":0,"size":0,"payload":{},"aside":{}}', b""]
    places = [i for i, frame in enumerate(frames) if frame.startswith(b"{")]
    for place in chance.sample(places, min(len(places), chance.choice((1, 2)))):
        try:
            frame = json.loads(frames[place][: frames[place].rindex(b"}") + 1])
        except ValueError:
            continue
        key = chance.choice(("n", "size", "turn", "payload", "aside"))
        frame[key] = "@@"
        if key in ("payload", "aside") and chance.random() < 0.7:
            frame[key] = {"n": 2, "turns": "@@", "lane": "main", "seam": "x", "started": "@@"}
        text = json.dumps(frame).replace('"@@"', chance.choice(RAW))
        frames[place] = text.encode("utf-8", "surrogatepass")
    if chance.random() < 0.1:
        frames[-1:-1] = [b'{"n":0,"turn":5}'] * 30_000
    files["-flight"] = b"\n".join(frames)


def _let_anything_in(db: sqlite3.Connection, table: str, sql: str) -> None:
    db.execute("PRAGMA writable_schema = ON")
    db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, table))
    version = db.execute("PRAGMA schema_version").fetchone()[0]
    db.execute(f"PRAGMA schema_version = {version + 1}")
    db.execute("PRAGMA writable_schema = OFF")


_BYTES = (flip, flip, flip_in_the_header, truncate, insert, blank, swap_pages, lose_a_file)
_STRUCTURED = (
    *(change_a_document,) * 20,
    *(odd_value,) * 8,
    *(break_a_blob,) * 6,
    *(lie_in_the_journal,) * 6,
    *(shuffle_events,) * 2,
    *(odd_meta,) * 4,
    double,
    odd_pragma,
    many,
    huge_row,
)
