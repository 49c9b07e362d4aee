"""The log of a tape: rows that each add to two zstd frames, one of events and one of bodies.

A *segment* is a run of rows whose pieces, joined, are one frame of events and one of bodies. Each
commit adds a row; when a segment is large enough, its rows are packed into one. So events can be
read without bodies, a body without other segments, and every commit before a crash without what
came after it.

Each event in a row of its own, packed by itself, took six times as many bytes: events are alike,
and only together do they pack well. One frame for the whole tape packs best, but to read one body
all earlier ones have to be unpacked.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from tracefork_core.errors import TapeError
from tracefork_core.tape.event import Event
from tracefork_core.tape.event import events as events_in
from tracefork_core.tape.frames import RATIO, Packer, pack, unpack

SEGMENT = 256 * 1024
"""Plain bytes of events or bodies after which a segment ends."""
_LARGE = 64 * 1024
_EVENTS_ALLOWANCE = 4 * 1024 * 1024
_EVENTS_RATIO = 100
_BODIES_ALLOWANCE = 64 * 1024 * 1024
_OPEN_SEGMENTS = 64 * 1024 * 1024
"""Plain bytes of bodies that a reader caches."""


class Cipher(Protocol):
    """Encrypts each piece of a sealed tape. `about` is its place: it opens in no other."""

    def seal(self, data: bytes, about: bytes) -> bytes: ...

    def open(self, data: bytes, about: bytes) -> bytes: ...


@dataclass
class _Growing:
    """The segment that is being written. `events` and `bodies` are plain."""

    number: int
    event_frame: Packer = field(default_factory=Packer)
    body_frame: Packer = field(default_factory=Packer)
    events: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    event_bytes: int = 0
    event_packed: int = 0
    body_bytes: int = 0
    rows: list[int] = field(default_factory=list)


class LogWriter:
    """Appends to the log. A row is one statement: a transaction, or part of the caller's."""

    def __init__(self, db: sqlite3.Connection, cipher: Cipher | None = None) -> None:
        self._db = db
        self._cipher = cipher
        self._seq = 0
        self._segment = _Growing(0)
        self._allowance = _EVENTS_ALLOWANCE

    @property
    def at(self) -> int:
        """The offset in its segment at which the next body will begin."""
        return self._segment.body_bytes

    @property
    def is_full(self) -> bool:
        """Whether the open segment must be packed before the next row."""
        return max(self._segment.event_bytes, self._segment.body_bytes) >= SEGMENT

    def append(self, events: bytes, bodies: list[bytes]) -> None:
        """Add one row. After an exception, roll back and call `break_off`."""
        segment = self._segment
        body = bodies[0] if len(bodies) == 1 else b"".join(bodies)
        packed_events, packed_body = segment.event_frame.add(events), segment.body_frame.add(body)
        self._seq += 1
        segment.rows.append(self._seq)
        segment.events.append(events)
        segment.bodies.append(body)
        segment.event_bytes += len(events)
        segment.event_packed += len(packed_events)
        segment.body_bytes += len(body)
        self._check_limits(segment, packed_body)
        self._insert(self._seq, packed_events, packed_body)

    def pack(self) -> None:
        """Turn the rows of the open segment into one row, and begin the next segment.

        That takes two statements, so the caller holds a transaction.
        """
        segment = self._segment
        size = segment.event_bytes + segment.body_bytes
        packed = segment.event_packed
        # Large rows gain nothing when they are packed again.
        if len(segment.rows) > 1 and size < len(segment.rows) * _LARGE:
            events = pack(b"".join(segment.events))
            if _excess(segment.event_bytes, len(events)) <= self._allowance:
                packed = len(events)
                first, last = segment.rows[0], segment.rows[-1]
                self._db.execute("DELETE FROM log WHERE seq BETWEEN ? AND ?", (first, last))
                self._insert(first, events, pack(b"".join(segment.bodies)))
        self._allowance -= _excess(segment.event_bytes, packed)
        self._segment = _Growing(segment.number + 1)

    def break_off(self) -> None:
        """Begin a new segment, because the last row of this one was rolled back."""
        self._segment = _Growing(self._segment.number + 1)

    def _insert(self, seq: int, events: bytes, bodies: bytes) -> None:
        if self._cipher is not None:
            events = self._cipher.seal(events, b"events %d" % seq)
            bodies = self._cipher.seal(bodies, b"bodies %d" % seq)
        row = (seq, self._segment.number, _crc(events, bodies), events, bodies)
        self._db.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?)", row)

    def _check_limits(self, segment: _Growing, packed: bytes) -> None:
        """Refuse to write what a reader would refuse as a decompression bomb."""
        if _excess(segment.event_bytes, segment.event_packed) > self._allowance:
            raise TapeError(
                f"tracefork: cannot record {segment.event_bytes} bytes of events that compress to "
                f"{segment.event_packed}: a reader would refuse them as a decompression bomb."
            )
        if segment.body_bytes > _BODIES_ALLOWANCE > len(packed) * RATIO:
            raise TapeError(
                f"tracefork: cannot record {segment.body_bytes} bytes of bodies that compress to "
                f"{len(packed)}: a reader would refuse them as a decompression bomb."
            )


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it lies in the file. `seq` is its position in the log."""

    seq: int
    segment: int
    crc: int
    events: bytes
    bodies: bytes

    @property
    def is_intact(self) -> bool:
        """Whether the row still has the checksum that it was written with."""
        return _crc(self.events, self.bodies) == self.crc


class LogReader:
    """Reads the log of an open tape."""

    def __init__(self, db: sqlite3.Connection, cipher: Cipher | None = None) -> None:
        self._db = db
        self._cipher = cipher
        self._rows: dict[int, list[int]] = {}
        self._bodies: OrderedDict[int, bytes] = OrderedDict()

    def segments(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the events of each segment, without touching a body."""
        rows = self._db.execute("SELECT seq, segment, events FROM log ORDER BY seq").fetchall()
        frames: dict[int, list[bytes]] = {}
        for seq, segment, events in rows:
            if not isinstance(segment, int) or not isinstance(events, bytes):
                raise _malformed(seq)
            self._rows.setdefault(segment, []).append(seq)
            frames.setdefault(segment, []).append(self._opened(events, b"events %d" % seq))
        allowance = _EVENTS_ALLOWANCE
        for segment, pieces in frames.items():
            frame = b"".join(pieces)
            lines = unpack(frame, allowance, _EVENTS_RATIO)
            # All segments share one allowance: decoded events take many times their plain size.
            allowance -= _excess(len(lines), len(frame))
            yield segment, lines

    def events(self) -> Iterator[Event]:
        """Yield the events of the log, in the order they were written."""
        for _, lines in self.segments():
            yield from events_in(lines)

    @cached_property
    def most(self) -> int:
        """The largest size that one blob may declare, given how large the tape is."""
        (packed,) = self._db.execute("SELECT total(length(bodies)) FROM log").fetchone()
        return _BODIES_ALLOWANCE + RATIO * int(packed)

    def bodies(self, segment: int) -> bytes:
        """Return the plain bodies of a segment, one after the other."""
        if (held := self._bodies.get(segment)) is not None:
            self._bodies.move_to_end(segment)
            return held
        rows = self._rows.get(segment)
        if rows is None:
            raise TapeError(f"tracefork: the tape is corrupt: segment {segment} is missing.")
        pieces = []
        query = "SELECT seq, bodies FROM log WHERE seq BETWEEN ? AND ? AND segment = ? ORDER BY seq"
        for seq, data in self._db.execute(query, (rows[0], rows[-1], segment)):
            if not isinstance(data, bytes):
                raise _malformed(seq)
            pieces.append(self._opened(data, b"bodies %d" % seq))
        plain = unpack(b"".join(pieces), _BODIES_ALLOWANCE)
        self._bodies[segment] = plain
        while len(self._bodies) > 1 and sum(map(len, self._bodies.values())) > _OPEN_SEGMENTS:
            self._bodies.popitem(last=False)
        return plain

    def rows(self) -> Iterator[Row]:
        """Yield all rows as they lie in the file."""
        query = "SELECT seq, segment, crc, events, bodies FROM log ORDER BY seq"
        for seq, segment, crc, events, bodies in self._db.execute(query):
            if not isinstance(events, bytes) or not isinstance(bodies, bytes):
                raise _malformed(seq)
            yield Row(seq, segment, crc, events, bodies)

    def _opened(self, data: bytes, about: bytes) -> bytes:
        return data if self._cipher is None else self._cipher.open(data, about)


def _malformed(seq: object) -> TapeError:
    return TapeError(f"tracefork: the tape is corrupt: row {seq} of its log is malformed.")


def _excess(plain: int, packed: int) -> int:
    """Return how many bytes of events exceed the ratio that their packed size allows."""
    return max(0, plain - _EVENTS_RATIO * packed)


def _crc(events: bytes, bodies: bytes) -> int:
    return zlib.crc32(bodies, zlib.crc32(events))
