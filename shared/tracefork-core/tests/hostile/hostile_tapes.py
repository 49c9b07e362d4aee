"""Tapes that a stranger made to fill a memory or to keep a processor busy, each of a few KB.

`TAPES` names a function for each: it writes the tape, and returns the variables of the environment
that a command needs to fall for it.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import crc32

import brotli
from backports import zstd

from tracefork_core.tape.digest import chain
from tracefork_core.tape.event import EXCHANGE
from tracefork_core.tape.event import events as read
from tracefork_core.tape.schema import TAPE_TABLES

Make = Callable[[Path], dict[str, str] | None]
TAPES: dict[str, Make] = {}
"""The hostile tapes by name."""
SECRET = "ghp_0A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r"
_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.window_log: 20,
}


def hostile(make: Make) -> Make:
    """Put a function into the table."""
    TAPES[make.__name__] = make
    return make


def packed(pieces: Iterable[bytes]) -> bytes:
    """Return one frame of many pieces."""
    packer = zstd.ZstdCompressor(options=_OPTIONS)
    return b"".join(map(packer.compress, pieces)) + packer.flush()


def write(path: Path, events: bytes, bodies: bytes = b"", **meta: str | bytes) -> None:
    """Write a tape of one row: a frame of events and one of bodies."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA page_size=1024")
        db.execute(f"PRAGMA application_id={0x7472666B}")
        db.execute("PRAGMA user_version=1")
        for table in TAPE_TABLES.values():
            db.execute(table)
        values = {"state": "complete", "mode": "safe", **meta}
        db.executemany("INSERT INTO meta VALUES (?, ?)", values.items())
        row = (1, 0, crc32(bodies, crc32(events)), events, bodies)
        db.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?)", row)
        db.commit()


def event(kind: str, aside: object, payload: object = None) -> bytes:
    """Return an event as a line."""
    document = {"kind": kind, "payload": payload or {}, "aside": aside}
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def exchange(n: int = 0, *, sent: Any = (), got: bytes = b"", **aside: Any) -> bytes:
    """Return the event of a model call, whose response's body is `got`."""
    headers, reason = aside.pop("headers", []), aside.pop("reason", "OK")
    url = aside.pop("asked", "https://api.openai.com/v1/chat/completions")
    request = {"method": "POST", "url": url, "headers": [], "body": sha256(b"").hexdigest()}
    response = {"status": 200, "reason": reason, "headers": headers}
    response["body"] = sha256(got).hexdigest()
    told = {"lane": "main", "seam": "httpx2", "started": 1, "end": "eof", "sent": list(sent)}
    told |= {"sizes": [len(got)] if got else [], "turns": [[3 * n, 2]], **aside}
    return event("exchange", told, {"n": n, "request": request, "response": response})


def described() -> bytes:
    """Return the event that says where a tape was recorded: `redact` asks for one."""
    return event("environment", {"python": "3", "platform": "x", "tracefork": "0", "started": 1})


def receipt(*events: bytes, **more: Any) -> bytes:
    """Return the event that closes a tape of these events, with their digest."""
    payloads = [bytes(event.payload) for event in read(b"".join(events)) if event.kind == EXCHANGE]
    return event("receipt", {"digest": chain(payloads), "exchanges": len(payloads), **more})


def one(path: Path, *events: bytes) -> None:
    """Write a tape of these events."""
    write(path, packed([described(), *events, receipt(*events)]))


def ordinary(path: Path) -> None:
    """Write a tape that is not hostile, to see what a command takes anyway."""
    one(path, exchange())


def with_body(path: Path, body: bytes, *, coding: str = "", at: int = 0) -> None:
    """Write a tape of one exchange with this response body, which lies in a frame."""
    headers = [["content-type", "application/json"]]
    headers += [["content-encoding", coding]] if coding else []
    blob = event("blob", {"sha": sha256(body).hexdigest(), "size": len(body), "at": at})
    lines = [blob, exchange(got=body, headers=headers)]
    write(path, packed([described(), *lines, receipt(*lines)]), packed([body]))


# ── frames ───────────────────────────────────────────────────────────────────────────────────────


@hostile
def a_frame_of_events_with_a_gigabyte_of_spaces(path: Path) -> None:
    write(path, packed([b" " * 2**20] * 1024))


@hostile
def a_frame_of_bodies_with_a_gigabyte_of_zeros(path: Path) -> None:
    blob = event("blob", {"sha": sha256(b"x").hexdigest(), "size": 1, "at": 0})
    write(path, packed([blob, exchange(got=b"x")]), packed([bytes(2**20)] * 1024))


@hostile
def four_hundred_thousand_events(path: Path) -> None:
    write(path, packed([b'{"kind":"a"}\n' * 320_000]))


@hostile
def four_hundred_thousand_steps(path: Path) -> None:
    line = event("step", {"id": "1", "kind": "a", "name": "b"})
    write(path, packed([line * (4_100_000 // len(line))]))


@hostile
def twelve_thousand_exchanges(path: Path) -> None:
    one(path, b"".join(exchange(n) for n in range(12_000)))


# ── events ───────────────────────────────────────────────────────────────────────────────────────


@hostile
def a_hundred_thousand_headers(path: Path) -> None:
    headers = [["a", "b"]] * 100_000
    one(path, exchange(headers=headers, sent=headers))


@hostile
def a_mode_of_5_mb(path: Path) -> None:
    write(path, packed([exchange()]), mode="m" * 5_000_000)


@hostile
def an_origin_of_5_mb(path: Path) -> None:
    origin = {"name": "n" * 5_000_000, "at": 0, "digest": ""}
    write(path, packed([exchange()]), origin=json.dumps(origin).encode())


@hostile
def a_parent_with_a_long_name(path: Path) -> None:
    origin = {"name": f"{'n' * 300}.tape", "at": 0, "digest": sha256(b"").hexdigest()}
    write(path, packed([exchange()]), origin=json.dumps(origin).encode())


@hostile
def an_event_that_nests_deeply(path: Path) -> None:
    deep = b"[" * 200_000 + b"]" * 200_000
    write(path, packed([b'{"kind":"step","payload":{},"aside":' + deep + b"}\n"]))


@hostile
def an_unknown_field_that_nests_deeply(path: Path) -> None:
    deep = b"[" * 900 + b"]" * 900
    line = exchange().replace(b'"lane"', b'"x":' + deep + b',"lane"')
    write(path, packed([line]))


@hostile
def names_of_megabytes(path: Path) -> None:
    long = "y" * 400_000
    step = event("step", {"id": "1", "kind": long, "name": long, "started": 1})
    told = exchange(step="1", lane=long, caller=long, reason=long, sent=[[long, long]])
    one(path, step, told)


@hostile
def texts_of_control_characters(path: Path) -> None:
    long = "\x1b" * 150_000
    step = event("step", {"id": "1", "kind": "node", "name": long, "error": long})
    one(path, step, exchange(step="1", caller=long, reason=long, sent=[["a", long]]))


@hostile
def a_url_of_megabytes(path: Path) -> None:
    one(path, exchange(asked="https://api.openai.com/" + "a%20/" * 500_000))


@hostile
def a_million_chunks(path: Path) -> None:
    one(path, exchange(sizes=[0] * 1_000_000, pace=[1] * 500_000))


@hostile
def a_million_turns(path: Path) -> None:
    one(path, exchange(sizes=[0] * 500_000, turns=[[n, 1] for n in range(300_000)]))


@hostile
def a_receipt_of_a_hundred_thousand_secrets(path: Path) -> None:
    secrets = {f"K{n}": 1 for n in range(100_000)}
    lines = [exchange(), receipt(exchange(), secrets=secrets, strays=["x"] * 400_000)]
    write(path, packed(lines))


@hostile
def a_hundred_thousand_draws(path: Path) -> None:
    reads = [{"source": "clock", "lane": "main", "site": "a.py:1", "values": [1]}] * 60_000
    one(path, exchange(), event("draws", {"reads": reads, "ambient": ["clock"]}))


@hostile
def an_environment_of_megabytes(path: Path) -> None:
    packages = {f"p{n}": "1" for n in range(150_000)}
    told = {"python": "3" * 500_000, "platform": "x", "tracefork": "0", "packages": packages}
    one(path, exchange(), event("environment", told))


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────


@hostile
def a_body_of_60_mb_of_empty_lists(path: Path) -> None:
    with_body(path, b"[" + b"[]," * 20_000_000 + b"0]")


@hostile
def a_body_of_60_mb_of_events(path: Path) -> None:
    body = b"data: {}\n\n" * 6_000_000
    blob = event("blob", {"sha": sha256(body).hexdigest(), "size": len(body), "at": 0})
    headers = [["content-type", "text/event-stream"]]
    lines = [blob, exchange(got=body, headers=headers)]
    write(path, packed([described(), *lines, receipt(*lines)]), packed([body]))


@hostile
def a_body_that_nests_deeply(path: Path) -> None:
    with_body(path, b'{"choices":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}")


@hostile
def a_body_of_60_mb_of_one_letter(path: Path) -> None:
    with_body(path, b"a" * 60_000_000)


@hostile
def a_body_of_base64_with_a_secret(path: Path) -> None:
    with_body(path, SECRET.encode() + b" " + b"QUJD" * 5_000_000)


@hostile
def a_gigabyte_in_gzip(path: Path) -> None:
    with_body(path, gzip.compress(bytes(2**28), 9), coding="gzip")


@hostile
def a_gigabyte_in_gzip_in_gzip(path: Path) -> None:
    with_body(path, gzip.compress(gzip.compress(bytes(2**28), 9), 9), coding="gzip, gzip")


@hostile
def a_gigabyte_in_brotli(path: Path) -> None:
    with_body(path, brotli.compress(bytes(2**28), quality=1), coding="br")


@hostile
def a_gigabyte_in_zstd(path: Path) -> None:
    with_body(path, packed([bytes(2**20)] * 1024), coding="zstd")


@hostile
def lists_in_gzip(path: Path) -> None:
    with_body(path, gzip.compress(b"[" + b"[]," * 350_000 + b"0]", 9), coding="gzip")


@hostile
def a_body_of_200_000_empty_members(path: Path) -> None:
    with_body(path, gzip.compress(b"", mtime=0) * 200_000, coding="gzip")


@hostile
def a_blob_that_declares_a_terabyte(path: Path) -> None:
    sha = sha256(b"x").hexdigest()
    one(path, event("blob", {"sha": sha, "size": 2**40, "at": 0}), exchange(got=b"x"))


# ── checkpoints, sealed ──────────────────────────────────────────────────────────────────────────


@hostile
def a_hundred_thousand_checkpoints(path: Path) -> None:
    empty = sha256(b"").hexdigest()
    told = {"thread": "t", "ns": "", "id": "1", "made": 1, "head": ["null", empty], "values": {}}
    line = event("checkpoint", {"checkpoint": told})
    one(path, line * (3_900_000 // len(line)), exchange())


@hostile
def a_checkpoint_of_60_mb(path: Path) -> None:
    body = b"\x91" * 500 + b"\xc0" + b"\x90" * 60_000_000
    sha = sha256(body).hexdigest()
    told = {
        "thread": "t" * 1000,
        "ns": "",
        "id": "i" * 100_000,
        "made": 1,
        "metadata": {"a": "b" * 300_000},
        "head": ["msgpack", sha],
        "values": {"messages": ["msgpack", sha], "m" * 100_000: ["msgpack", sha]},
    }
    lines = [event("blob", {"sha": sha, "size": len(body), "at": 0})]
    lines += [event("checkpoint", {"checkpoint": told}), exchange()]
    write(path, packed([described(), *lines, receipt(*lines)]), packed([body]))


@hostile
def a_seal_that_takes_two_gigabytes(path: Path) -> dict[str, str]:
    key = b"age-encryption.org/v1\n-> scrypt ajMFur+EJLGasZOqfvY5Xw 21\n"
    key += b"cbKVdcmlRhsNKKm+IFtfHYUHyZ1RQDjGvQmIFW8GYxk\n--- " + b"A" * 43 + b"\n" + bytes(64)
    write(path, packed([exchange()]), mode="sealed", key=key)
    return {"TRACEFORK_PASSPHRASE": "open sesame"}
