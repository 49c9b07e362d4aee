"""Tapes of earlier formats, brought into today's: pure functions from one database to another."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape import schema
from tracefork_core.tape.blobs import BLOB, BlobRecord
from tracefork_core.tape.canonical import canonical
from tracefork_core.tape.event import EXCHANGE, ExchangeAside, ExchangePayload, line
from tracefork_core.tape.frames import unpack
from tracefork_core.tape.log import LogWriter

_ALLOWANCE = 64 * 1024 * 1024


def upgraded(db: sqlite3.Connection) -> sqlite3.Connection:
    """Return a tape of any format as one of today's format; an earlier one is closed.

    Raises:
        TapeError: something in it cannot be read.
    """
    while (step := _STEPS.get(schema.version(db))) is not None:
        newer = step(db)
        db.close()
        db = newer
    return db


def _from_1(db: sqlite3.Connection) -> sqlite3.Connection:
    """Format 1 had a row for each event and each body, and tables for what is in flight."""
    newer = schema.in_memory()
    try:
        _fill_from_1(newer, db)
    except BaseException:
        newer.close()
        raise
    return newer


_STEPS: dict[int, Callable[[sqlite3.Connection], sqlite3.Connection]] = {1: _from_1}


def _fill_from_1(newer: sqlite3.Connection, db: sqlite3.Connection) -> None:
    newer.executemany("INSERT INTO meta VALUES (?, ?)", db.execute("SELECT key, value FROM meta"))
    log = LogWriter(newer)
    for size, codec, data in db.execute("SELECT size, codec, data FROM blobs ORDER BY id"):
        _put(log, _plain(size, codec, data))
    for event in db.execute("SELECT kind, payload, aside FROM events ORDER BY seq"):
        _write(log, *event)
    for payload, aside, body in _flights(db):
        _put(log, body)
        _write(log, EXCHANGE, payload, aside)


def _put(log: LogWriter, data: bytes) -> None:
    record = BlobRecord(hashlib.sha256(data).hexdigest(), len(data), log.at)
    log.append(line(BLOB, b"{}", canonical(record)), [data])


def _write(log: LogWriter, kind: Any, payload: Any, aside: Any) -> None:
    if not isinstance(kind, str) or not isinstance(payload, bytes) or not isinstance(aside, bytes):
        raise TapeError("tracefork: an event of the tape is not stored as bytes.")
    log.append(line(kind, payload, aside), [])


def _plain(size: Any, codec: Any, data: Any) -> bytes:
    plain = unpack(data, _ALLOWANCE) if codec and isinstance(data, bytes) else data
    if not isinstance(plain, bytes) or len(plain) != size:
        raise TapeError("tracefork: a blob does not have the size it declares.")
    return plain


def _flights(db: sqlite3.Connection) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield what a crash cut off, with the chunks that the agent had seen."""
    chunks = "SELECT turn, data FROM flight_chunks WHERE n = ? ORDER BY turn"
    for n, payload_json, aside_json in db.execute("SELECT n, payload, aside FROM flights"):
        payload = msgspec.json.decode(payload_json, type=ExchangePayload)
        aside = msgspec.json.decode(aside_json, type=ExchangeAside)
        rows = db.execute(chunks, (n,)).fetchall()
        body = b"".join(data for _, data in rows)
        aside.sizes = [len(data) for _, data in rows]
        aside.turns.extend([turn, 1] for turn, _ in rows)
        if payload.response is not None:
            address = hashlib.sha256(body).hexdigest()
            response = msgspec.structs.replace(payload.response, body=address)
            payload = msgspec.structs.replace(payload, response=response)
        yield canonical(payload), canonical(aside), body
