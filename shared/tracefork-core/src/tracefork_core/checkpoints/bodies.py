"""The bytes of values in a file of threads: each stored once per thread, as a delta if possible.

A state is mostly the state before it. Its row holds what is new; the rest is read from its base
row, and so on down. A chain ends where reading it would cost more than about twice the value; the
next value is stored whole. So a thread grows with what is new in it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape import blobs, delta
from tracefork_core.tape.blobs import EMPTY
from tracefork_core.tape.checkpoint import Value
from tracefork_core.tape.delta import Composer, aligned
from tracefork_core.tape.frames import RATIO, pack, unpack
from tracefork_core.tape.schema import LARGEST

Elsewhere = Callable[[str], bytes]
"""Returns the bytes at an address."""

_WORTH_A_DELTA = 256
_WORTH_PACKING = 1024
"""New bytes of a delta are compressed from this size on: each frame of a chain costs time."""
_ROW = 128
"""The cost of reading one more row, in bytes of the value."""
_HEAVIEST = 8
"""The rows of a value may come to this many times its size, in a file of a stranger."""
_ALLOWANCE = 1024 * 1024
_MOST_PIECES = 8 * blobs.MOST_PIECES
"""The most pieces of one row, in a file of a stranger."""
_STEP = 16
"""What a step costs, in bytes of the value: looking at a piece, or looking for a part of it."""
_AT_HAND = 64
_AT_HAND_BYTES = 32 * 1024 * 1024

_Pieces = Annotated[
    list[Annotated[list[int], msgspec.Meta(max_length=2)]], msgspec.Meta(max_length=_MOST_PIECES)
]
_pieces = msgspec.msgpack.Decoder(_Pieces).decode
_CHAIN = (
    "WITH RECURSIVE chain (id, sha, size, base, pieces, data) AS ("
    "SELECT id, sha, size, base, pieces, data FROM bodies WHERE thread = :thread AND id = :row "
    "UNION ALL SELECT below.id, below.sha, below.size, below.base, below.pieces, below.data "
    "FROM chain JOIN bodies AS below ON below.id = chain.base "
    "WHERE below.thread = :thread AND below.id < chain.id) SELECT * FROM chain"
)


class BodyStore:
    """The values of one file. `elsewhere` returns the bytes of those that were put without any."""

    def __init__(self, elsewhere: Elsewhere | None) -> None:
        self._elsewhere = elsewhere
        self._plain: OrderedDict[str, bytes] = OrderedDict()

    def put(
        self,
        db: sqlite3.Connection,
        thread: int,
        value: Value,
        body: bytes | None,
        like: int | None = None,
    ) -> int:
        """Store a value, unless its thread has it, and return its row.

        `like` is the row of the value that it probably continues.

        Raises:
            TapeError: its bytes are not given, or are more than `LARGEST`.
        """
        if (row := _find(db, thread, value)) is not None:
            return row
        if body is None and self._elsewhere is None:
            raise TapeError(f"tracefork: cannot store value {value.sha[:12]} without its bytes.")
        if body is None:
            return _insert(db, thread, value, (0, 0, 0, None, None, None))
        if len(body) > LARGEST:
            raise TapeError(
                f"tracefork: cannot store a value of {len(body)} bytes; the largest value that a "
                f"file of threads can hold has {LARGEST} bytes."
            )
        self._remember(value.sha, body)
        return _insert(db, thread, value, self._stored(db, thread, body, like))

    def value(self, db: sqlite3.Connection, thread: int, row: int) -> Value:
        """Return the value in a row."""
        query = "SELECT tag, sha FROM bodies WHERE thread = ? AND id = ?"
        columns = db.execute(query, (thread, row)).fetchone()
        if columns is None or not isinstance(columns[0], str):
            raise TapeError(f"tracefork: a checkpoint is corrupt: its value {row} is missing.")
        return Value(columns[0], columns[1].hex())

    def body(self, db: sqlite3.Connection, thread: int, value: Value) -> bytes:
        """Return the bytes of a value, verified.

        Raises:
            TapeError: the value is missing or corrupt.
        """
        row = _find(db, thread, value)
        if row is None:
            raise _missing(value.sha)
        return self.bytes_of(db, thread, row, value.sha)

    def bytes_of(self, db: sqlite3.Connection, thread: int, row: int, sha: str) -> bytes:
        """Return the bytes of the value in a row, verified."""
        if sha == EMPTY:
            return b""
        if (held := self._plain.get(sha)) is not None:
            self._plain.move_to_end(sha)
            return held
        data = self._read(db, thread, row, sha)
        self._remember(sha, data)
        return data

    def rebase(self, db: sqlite3.Connection, thread: int, row: int, like: int | None) -> None:
        """Store the value in a row again, with another base: its base will be deleted."""
        query = "SELECT sha FROM bodies WHERE thread = ? AND id = ?"
        ((sha,),) = db.execute(query, (thread, row)).fetchall()
        stored = self._stored(db, thread, self.bytes_of(db, thread, row, sha.hex()), like)
        db.execute(
            "UPDATE bodies SET size = ?, cost = ?, depth = ?, base = ?, pieces = ?, data = ? "
            "WHERE id = ?",
            (*stored, row),
        )

    def forget(self) -> None:
        """Empty the cache, because values were deleted."""
        self._plain.clear()

    def _stored(
        self, db: sqlite3.Connection, thread: int, body: bytes, like: int | None
    ) -> tuple[int, int, int, int | None, bytes | None, bytes]:
        """Return the columns of a body from `size` on."""
        query = "SELECT sha, cost, depth FROM bodies WHERE thread = ? AND id = ?"
        base = db.execute(query, (thread, like)).fetchone() if like is not None else None
        if base is not None and like is not None and len(body) >= _WORTH_A_DELTA:
            sha, cost, depth = base
            pieces = aligned(body, self.bytes_of(db, thread, like, sha.hex()))
            # A reader follows each copy but one through every row below. In a long chain, a short
            # copy (the end that two messages share) costs more than it saves.
            pieces = delta.simplified(pieces, _STEP * depth)
            parts = sum(len(piece) == 2 for piece in pieces) - 1
            cost += _STEP * (len(pieces) + max(parts, 0) * depth)
            cost += _ROW + len(body) - delta.copied(pieces)
            depth += 1
            worth_it = delta.copied(pieces) > len(body) // 4
            if worth_it and cost <= 2 * len(body) + 4096 and len(pieces) <= _MOST_PIECES:
                new = delta.fresh(body, pieces)
                new = _packed(new) if len(new) >= _WORTH_PACKING else new
                return len(body), cost, depth, like, msgspec.msgpack.encode(pieces), new
        return len(body), _ROW + len(body), 1, None, None, _packed(body)

    def _read(self, db: sqlite3.Connection, thread: int, row: int, sha: str) -> bytes:
        composer: Composer | None = None
        heaviest, new_bytes = 0, _NewBytes(0)
        try:
            for _, key, size, _, packed, data in db.execute(_CHAIN, {"thread": thread, "row": row}):
                address = key.hex()
                if composer is None:
                    if address != sha:
                        break
                    if data is None:
                        return self._at_hand(address)
                    if not 0 <= size <= LARGEST:
                        raise TapeError(
                            f"tracefork: value {sha[:12]} is corrupt: it declares {size} bytes."
                        )
                    heaviest = _HEAVIEST * size + _ALLOWANCE
                    new_bytes.left = heaviest
                    composer = Composer(f"value {sha[:12]}", size, heaviest // _STEP)
                if data is None or address in self._plain:
                    composer.end(self._at_hand(address))
                    return self._verified(composer, sha)
                pieces = _pieces(packed) if packed is not None else [[size]]
                heaviest -= _ROW + len(data) + len(packed or b"")
                if heaviest < 0:
                    raise _corrupt(sha, "its deltas are larger than any writer stores")
                new_bytes.data = data
                if not composer.add(size, pieces, new_bytes):
                    return self._verified(composer, sha)
        except (msgspec.MsgspecError, TypeError, ValueError, AttributeError) as error:
            raise _corrupt(sha, str(error)) from error
        raise _missing(sha)

    def _verified(self, composer: Composer, sha: str) -> bytes:
        value = composer.body
        if hashlib.sha256(value).hexdigest() != sha:
            raise _corrupt(sha, "its bytes do not have this sha256")
        return value

    def _at_hand(self, sha: str) -> bytes:
        if (held := self._plain.get(sha)) is not None:
            return held
        if self._elsewhere is not None:
            return self._elsewhere(sha)
        raise _missing(sha)

    def _remember(self, sha: str, data: bytes) -> None:
        self._plain[sha] = data
        self._plain.move_to_end(sha)
        total = sum(map(len, self._plain.values()))
        while len(self._plain) > _AT_HAND or total > _AT_HAND_BYTES:
            total -= len(self._plain.popitem(last=False)[1])


def _packed(fresh: bytes) -> bytes:
    """Return new bytes as they are stored: compressed, if that is smaller and safe to unpack."""
    frame = pack(fresh)
    if len(frame) < len(fresh) <= _ALLOWANCE + RATIO * len(frame):
        return frame
    return fresh


@dataclass(slots=True)
class _NewBytes:
    """Decompresses the new bytes of one row after another; `data` is what the row holds.

    `left` bounds the sum for all rows of a value.
    """

    left: int
    data: bytes = b""

    def __call__(self, count: int) -> memoryview:
        self.left -= count
        if self.left < 0 or count > _ALLOWANCE + RATIO * len(self.data):
            raise TapeError(
                "tracefork: a value is corrupt: it decompresses to more than any writer stores."
            )
        is_plain = len(self.data) == count
        fresh = self.data if is_plain else unpack(self.data, allowance=count, ratio=0)
        if len(fresh) != count:
            raise TapeError(
                f"tracefork: a value is corrupt: {len(fresh)} new bytes instead of {count}."
            )
        return memoryview(fresh)


def _find(db: sqlite3.Connection, thread: int, value: Value) -> int | None:
    query = "SELECT id FROM bodies WHERE thread = ? AND sha = ? AND tag = ?"
    row = db.execute(query, (thread, bytes.fromhex(value.sha), value.tag)).fetchone()
    return row[0] if row else None


def _missing(sha: str) -> TapeError:
    return TapeError(f"tracefork: value {sha[:12]} is missing from the file.")


def _corrupt(sha: str, why: str) -> TapeError:
    return TapeError(f"tracefork: value {sha[:12]} is corrupt: {why}.")


def _insert(db: sqlite3.Connection, thread: int, value: Value, columns: tuple[object, ...]) -> int:
    row = db.execute(
        "INSERT INTO bodies (thread, sha, tag, size, cost, depth, base, pieces, data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (thread, bytes.fromhex(value.sha), value.tag, *columns),
    ).lastrowid
    assert row is not None
    return row
