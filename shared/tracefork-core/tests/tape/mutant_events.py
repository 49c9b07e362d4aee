"""Mutants of the events of a tape, with hostile values anywhere in any document."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from tracefork_core.tape.log import LogReader, LogWriter

Files = dict[str, bytes]
"""What a tape consists of: `""` is the tape, `"-wal"` and `"-flight"` lie beside it."""

_NUMBERS = ("-1", "0", "1", "2147483648", "9223372036854775807", "-9223372036854775808", "1e999")
_MORE_NUMBERS = ("18446744073709551616", "-0.5", "1.0", "NaN", "1" * 400, "1e-400", "268435457")
_TEXTS = ('""', '"\\u001b[2J\\u0007\\u202e"', '"\\ud800"', '"\x01"', '"' + "x" * 200_000 + '"')
_MORE_TEXTS = ('"\\u0000"', '"http://[::1/x"', '"http://x:99999999/\\r\\n"', '"%s{0}$(id)"', "null")
_SHAPES = ("[]", "{}", "[[]]", "true", "[1,2,3]", '{"a":1,"a":2}', "[" * 3000 + "]" * 3000, "")
_DEEP = '{"a":' * 2000 + "1" + "}" * 2000
RAW = (*_NUMBERS, *_MORE_NUMBERS, *_TEXTS, *_MORE_TEXTS, *_SHAPES, _DEEP, "[0," * 50_000 + "0")


def opened(files: Files) -> sqlite3.Connection:
    """Open the tape of a mutant in memory, with its log folded in."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            Path(folder, f"tape{suffix}").write_bytes(files.get(suffix, b""))
        with closing(sqlite3.connect(Path(folder, "tape"))) as tape:
            tape.backup(db)
    return db


def store(files: Files, db: sqlite3.Connection) -> None:
    files[""] = db.serialize()
    files.pop("-wal", None)


def change_a_document(files: Files, chance: random.Random) -> None:
    """Put a hostile value into one or several places of one event."""

    def change(lines: list[bytes]) -> None:
        for _ in range(chance.choice((1, 1, 3))):
            place = chance.randrange(len(lines))
            lines[place] = _changed(lines[place], chance)

    _rewrite(files, change)


def shuffle_events(files: Files, chance: random.Random) -> None:
    """Drop, repeat, move or cut an event."""

    def change(lines: list[bytes]) -> None:
        line = lines.pop(chance.randrange(len(lines)))
        match chance.randrange(4):
            case 0:
                lines.insert(chance.randrange(len(lines) + 1), line)
            case 1:
                lines += [line] * chance.choice((2, 300))
            case 2:
                lines.append(line[: chance.randrange(len(line))] + b"\n")

    _rewrite(files, change)


def break_a_blob(files: Files, chance: random.Random) -> None:
    """Change the location of a blob, or the pieces that make it up."""

    def change(lines: list[bytes]) -> None:
        places = [i for i, line in enumerate(lines) if b'"kind":"blob"' in line]
        if not places:
            return
        place = chance.choice(places)
        record = json.loads(lines[place])["aside"]
        others = [json.loads(lines[other])["aside"]["sha"] for other in places]
        number = chance.choice((0, -1, 1, 2**31, 2**62, 2**63 - 1, record["size"], 268435456))
        record |= chance.choice(
            (
                {"size": number},
                {"at": number},
                {"pieces": [[number]]},
                {"pieces": [[]]},
                {"pieces": [[0, number], [number]]},
                {"pieces": [[number, record["size"]]]},
                {"pieces": chance.choice(([[0, 0]] * 100_000, [[]] * 1_300_000))},
                {"pieces": [[1]] * record["size"]},
                {"base": chance.choice(others)},
                {"base": chance.choice(others), "pieces": [[0, number]]},
                {"base": chance.choice(others), "pieces": [[i, 1] for i in range(9999)]},
                {"sha": chance.choice(others)},
            )
        )
        lines[place] = _line("blob", {}, record)

    _rewrite(files, change)


def double(files: Files, chance: random.Random) -> None:
    """Make a tiny body that unpacks to more than any memory holds."""
    times, ways = chance.choice((8, 14, 20, 40, 62)), chance.choice((2, 2, 64))

    def change(lines: list[bytes], bodies: bytes = b"") -> None:
        blobs = [json.loads(line)["aside"] for line in lines if b'"kind":"blob"' in line]
        if not blobs:
            return
        base, size = blobs[0]["sha"], min(max(blobs[0]["size"], 1), 2**62)
        true = hashlib.sha256(bodies[blobs[0]["at"] :][:size]).hexdigest() == base
        for i in range(times):
            sha = f"{i:064x}"
            if true and ways == 2 and size < 2**25:
                sha = _sha_of_many(bodies[blobs[0]["at"] :][: blobs[0]["size"]], 2 ** (i + 1))
            pieces = [[0, size]] * ways
            size = min(size * ways, 2**63 - 1)
            if size > 2**27 and chance.random() < 0.5:
                break
            blob = {"sha": sha, "size": size, "at": 0, "base": base, "pieces": pieces}
            lines.insert(-1, _line("blob", {}, blob))
            base = sha
        for i, line in enumerate(lines):
            if b'"kind":"exchange"' in line:
                event = json.loads(line)
                event["payload"]["request"]["body"] = base
                lines[i] = _line("exchange", event["payload"], event["aside"])
                break

    _rewrite(files, change)


@lru_cache(maxsize=64)
def _sha_of_many(data: bytes, times: int) -> str:
    found = hashlib.sha256()
    for _ in range(times):
        found.update(data)
    return found.hexdigest()


def many(files: Files, chance: random.Random) -> None:
    """Add very many entries of one kind: rows, segments, steps, chunks, turns or draws."""
    kind, count = chance.randrange(6), chance.choice((3_000, 20_000))

    def change(lines: list[bytes]) -> None:
        if kind == 0:
            lines += [_step(i, f"s{i + 1}") for i in range(count)]
        elif kind == 1:
            lines += [_line("step_end", {}, {"id": "s1", "ended": i}) for i in range(count)]
        elif kind == 2:
            reads = {"source": "time", "lane": "main", "site": "x", "values": [2**62] * count}
            lines.append(_line("draws", {}, {"reads": [reads] * 3}))
        for i, line in enumerate(lines):
            if kind == 3 and b'"kind":"exchange"' in line:
                event = json.loads(line)
                event["aside"] |= {"sizes": [0] * count, "turns": [[i, 1] for i in range(count)]}
                lines[i] = _line("exchange", event["payload"], event["aside"])

    _rewrite(files, change, each_in_a_row=kind >= 4, segments=kind == 4)


def _step(i: int, parent: str) -> bytes:
    return _line("step", {}, {"id": f"s{i}", "kind": "task", "name": "x", "parent": parent})


def _changed(line: bytes, chance: random.Random) -> bytes:
    """Return an event with another value, name or document in one place."""
    try:
        event = json.loads(line)
        key = chance.choice([*event, "aside" if "aside" in event else next(iter(event))])
    except (ValueError, TypeError, RecursionError):
        return line  # It was changed before.
    holder = event
    while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.85:
        holder = holder[key]
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = chance.choice(keys)
    match chance.randrange(8):
        case 0:
            del holder[key]
            return json.dumps(event).encode() + b"\n"
        case 1 if isinstance(holder, dict):
            holder["\x1b[2J"] = holder.pop(key)
            return json.dumps(event).encode() + b"\n"
        case 2 if isinstance(holder, dict):
            holder["@@"] = 1
            twice = f"{json.dumps(key)}: {json.dumps(holder[key])}"
            return json.dumps(event).replace('"@@": 1', twice).encode() + b"\n"
    holder[key] = "@@"
    text = json.dumps(event).replace('"@@"', chance.choice(RAW))
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _line(kind: str, payload: object, aside: object) -> bytes:
    return json.dumps({"kind": kind, "payload": payload, "aside": aside}).encode() + b"\n"


class _Careless(LogWriter):
    """A writer that writes events which readers refuse."""

    def _check_limits(self, *_: object) -> None:
        pass


def _rewrite(
    files: Files,
    change: Callable[..., None],
    *,
    each_in_a_row: bool = False,
    segments: bool = False,
) -> None:
    """Write a new tape with other events; the bodies keep their places."""
    with closing(opened(files)) as db:
        log = LogReader(db)
        found = [(text.splitlines(keepends=True), log.bodies(n)) for n, text in log.segments()]
        segment = 0 if len(found) < 2 or len(found[-1][0]) < 3 else -1
        change(*found[segment][: change.__code__.co_argcount])
        db.execute("BEGIN")
        db.execute("DELETE FROM log")
        db.execute("DELETE FROM meta WHERE key = 'checksum'")
        writer = _Careless(db)
        for lines, bodies in found:
            writer.append(b"" if each_in_a_row else b"".join(lines), [bodies])
            for line in (lines * 100)[:5000] if each_in_a_row else ():
                writer.append(line, [])
                if segments:
                    writer.break_off()
            writer.pack()
        db.execute("COMMIT")
        store(files, db)
