"""The bytes of values in a file of threads: each once in its thread, as a delta of an earlier one.

A state is mostly the state before it. What is new in it lies in a row; the rest is read from the
row it rests on, and so on down. A chain is begun anew where reading it would come to more than
about twice the value itself: a thread grows as what was said in it.
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
"""New bytes in a delta that are packed: of a long chain, each frame costs its reader time."""
_ROW = 128
"""What reading one more row costs, in bytes of its value."""
_HEAVIEST = 8
"""Times its size: what the rows of a value may come to in a file somebody else wrote."""
_ALLOWANCE = 1024 * 1024
_MOST_PIECES = 8 * blobs.MOST_PIECES
"""Pieces of one row in a file somebody else wrote."""
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
    """The bodies of one file. `elsewhere` returns those that were put without their bytes."""

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
        """Store a value, unless its thread has it, and return its row; `like` is one it continues.

        Raises:
            TapeError: its bytes are neither given nor anywhere else, or are too many.
        """
        if (row := _find(db, thread, value)) is not None:
            return row
        if body is None and self._elsewhere is None:
            raise TapeError(f"tracefork: the bytes of value {value.sha[:12]} were not given.")
        if body is None:
            return _insert(db, thread, value, (0, 0, 0, None, None, None))
        if len(body) > LARGEST:
            raise TapeError(
                f"tracefork: a value of {len(body)} bytes does not go into a file of threads; the "
                f"largest that does has {LARGEST}."
            )
        self._remember(value.sha, body)
        return _insert(db, thread, value, self._stored(db, thread, body, like))

    def value(self, db: sqlite3.Connection, thread: int, row: int) -> Value:
        """Return the value in a row."""
        query = "SELECT tag, sha FROM bodies WHERE thread = ? AND id = ?"
        found = db.execute(query, (thread, row)).fetchone()
        if found is None or not isinstance(found[0], str):
            raise TapeError("tracefork: a checkpoint names a value that is not in the file.")
        return Value(found[0], found[1].hex())

    def body(self, db: sqlite3.Connection, thread: int, value: Value) -> bytes:
        """Return the bytes of a value, verified.

        Raises:
            TapeError: they are not there, or are not what was put.
        """
        row = _find(db, thread, value)
        if row is None:
            raise TapeError(f"tracefork: value {value.sha[:12]} is not in the file.")
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
        """Store the value in a row anew, against another one: what it rested on will go."""
        query = "SELECT sha FROM bodies WHERE thread = ? AND id = ?"
        ((sha,),) = db.execute(query, (thread, row)).fetchall()
        stored = self._stored(db, thread, self.bytes_of(db, thread, row, sha.hex()), like)
        db.execute(
            "UPDATE bodies SET size = ?, cost = ?, depth = ?, base = ?, pieces = ?, data = ? "
            "WHERE id = ?",
            (*stored, row),
        )

    def forget(self) -> None:
        """Keep no bytes at hand: some were deleted."""
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
            # Every copy but one is a part more that its reader looks for in each row below: the
            # end that two messages have in common is not worth that in a long chain.
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
                            "tracefork: a value is larger than a file of threads takes."
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
                    raise TapeError("tracefork: a value rests on more than any writer stores.")
                new_bytes.data = data
                if not composer.add(size, pieces, new_bytes):
                    return self._verified(composer, sha)
        except (msgspec.MsgspecError, TypeError, ValueError, AttributeError) as error:
            raise TapeError(f"tracefork: value {sha[:12]} is damaged: {error}.") from error
        raise TapeError(f"tracefork: value {sha[:12]} is not in the file.")

    def _verified(self, composer: Composer, sha: str) -> bytes:
        value = composer.body
        if hashlib.sha256(value).hexdigest() != sha:
            raise TapeError(f"tracefork: value {sha[:12]} was changed since it was put.")
        return value

    def _at_hand(self, sha: str) -> bytes:
        if (held := self._plain.get(sha)) is not None:
            return held
        if self._elsewhere is not None:
            return self._elsewhere(sha)
        raise TapeError(f"tracefork: value {sha[:12]} is not in the file.")

    def _remember(self, sha: str, data: bytes) -> None:
        self._plain[sha] = data
        self._plain.move_to_end(sha)
        total = sum(map(len, self._plain.values()))
        while len(self._plain) > _AT_HAND or total > _AT_HAND_BYTES:
            total -= len(self._plain.popitem(last=False)[1])


def _packed(fresh: bytes) -> bytes:
    """Return new bytes as they are stored: packed where that is smaller, and no bomb."""
    frame = pack(fresh)
    if len(frame) < len(fresh) <= _ALLOWANCE + RATIO * len(frame):
        return frame
    return fresh


@dataclass(slots=True)
class _NewBytes:
    """Unpacks the new bytes of one row after the other: `data` is what lies in the row.

    `left` bounds what all rows of a value unpack to.
    """

    left: int
    data: bytes = b""

    def __call__(self, count: int) -> memoryview:
        self.left -= count
        if self.left < 0 or count > _ALLOWANCE + RATIO * len(self.data):
            raise TapeError("tracefork: a value unpacks to more than any writer packs.")
        is_plain = len(self.data) == count
        fresh = self.data if is_plain else unpack(self.data, allowance=count, ratio=0)
        if len(fresh) != count:
            raise TapeError("tracefork: a value does not have the bytes it declares.")
        return memoryview(fresh)


def _find(db: sqlite3.Connection, thread: int, value: Value) -> int | None:
    query = "SELECT id FROM bodies WHERE thread = ? AND sha = ? AND tag = ?"
    found = db.execute(query, (thread, bytes.fromhex(value.sha), value.tag)).fetchone()
    return found[0] if found else None


def _insert(db: sqlite3.Connection, thread: int, value: Value, columns: tuple[object, ...]) -> int:
    row = db.execute(
        "INSERT INTO bodies (thread, sha, tag, size, cost, depth, base, pieces, data) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (thread, bytes.fromhex(value.sha), value.tag, *columns),
    ).lastrowid
    assert row is not None
    return row
