"""Blobs: bodies under the sha256 of their plain bytes, stored once, as deltas of one another.

A blob's new bytes lie in the bodies of the segment its event is in; what it shares with an earlier
blob is read from that.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape.schema import LARGEST

EMPTY = hashlib.sha256(b"").hexdigest()
BLOB = "blob"
MOST_PIECES = 16_384
"""Pieces of all deltas that lead to one blob, at most; a reader allows for some more."""
_AT_HAND = 8
_AT_HAND_BYTES = 32 * 1024 * 1024

_Range = tuple[str, int, int]


class BlobRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a blob is: `at` in the bodies of its segment, `size` bytes plain.

    With a `base` (an address), `pieces` are its delta: `[n]` new bytes, `[offset, n]` of the base.
    """

    sha: str
    size: int
    at: int
    base: str | None = None
    pieces: list[list[int]] = []


@dataclass(frozen=True, slots=True)
class _Shape:
    """A blob one level down: piece i is the bytes from `places[i]` on, and lies at `sources[i]`.

    `sources` are whether it is copied, and where it begins in the base or in the bodies.
    """

    base: str | None
    segment: int
    places: list[int]
    sources: list[tuple[bool, int]]


class Bodies(Protocol):
    """Where the new bytes of blobs lie."""

    @property
    def most(self) -> int:
        """The bytes that one blob may come to."""

    def bodies(self, segment: int) -> bytes:
        """Return the bodies of a segment, plain, one behind the other."""


class BlobReader:
    """The blobs of one open tape."""

    def __init__(self, bodies: Bodies, elsewhere: Callable[[str], bytes] | None = None) -> None:
        self._bodies = bodies
        self._elsewhere = elsewhere
        self._blobs: dict[str, tuple[int, int, BlobRecord]] = {}
        self._plain: OrderedDict[str, bytes] = OrderedDict()
        self._plain_bytes = 0
        self._unreadable: set[str] = set()

    def add(self, segment: int, record: BlobRecord) -> None:
        """Learn where a blob is; its base is known before it."""
        self._blobs.setdefault(record.sha, (len(self._blobs), segment, record))

    def __iter__(self) -> Iterator[str]:
        return iter(self._blobs)

    def get(self, sha: str) -> bytes:
        """Return the plain bytes at an address.

        Raises:
            TapeError: the blob is missing, or its bytes are not what its address says.
        """
        if (held := self._plain.get(sha)) is not None:
            self._plain.move_to_end(sha)
            return held
        if sha not in self._blobs:
            if self._elsewhere is not None:
                return self._elsewhere(sha)
            raise TapeError(f"tracefork: blob {sha[:12]} is missing from the tape.")
        try:
            data = self._read(sha)
        except TapeError:
            self._unreadable.add(sha)  # What rests on it is not tried: it may have taken long.
            raise
        if hashlib.sha256(data).hexdigest() != sha:
            raise TapeError(f"tracefork: blob {sha[:12]} was changed since it was recorded.")
        self._plain[sha] = data
        self._plain_bytes += len(data)
        while len(self._plain) > _AT_HAND or self._plain_bytes > _AT_HAND_BYTES:
            self._plain_bytes -= len(self._plain.popitem(last=False)[1])
        return data

    def _read(self, sha: str) -> bytes:
        """Follow the deltas from a blob down to new bytes, piece by piece, in order."""
        _, segment, record = self._blobs[sha]
        size = record.size
        if not 0 <= size <= min(LARGEST, self._bodies.most):
            raise TapeError(f"tracefork: blob {sha[:12]} is larger than a tape takes, or no blob.")
        if record.base is None and not record.pieces:
            return _cut(self._bodies.bodies(segment), record.at, size)
        parts: list[bytes] = []
        waiting: list[bytes | _Range] = [(sha, 0, size)]
        shapes: dict[str, _Shape] = {}
        budget = 8 * MOST_PIECES
        while waiting:
            if isinstance(piece := waiting.pop(), bytes):
                parts.append(piece)
                continue
            name, start, length = piece
            if (plain := self._at_hand(name)) is not None:
                parts.append(_cut(plain, start, length))
                continue
            if name in self._unreadable:
                raise TapeError(f"tracefork: blob {sha[:12]} rests on one that cannot be read.")
            if name not in shapes:
                shapes[name] = self._shape(name)
                budget -= len(shapes[name].places)
            inner = list(self._pieces(shapes[name], start, length))
            budget -= 1 + len(inner)
            if budget < 0:
                raise TapeError(f"tracefork: blob {sha[:12]} is made of too many pieces.")
            waiting.extend(reversed(inner))
        return b"".join(parts)

    def _at_hand(self, sha: str) -> bytes | None:
        """Return a blob that was read already, or lies on another tape."""
        if (held := self._plain.get(sha)) is not None or sha in self._blobs:
            return held
        if self._elsewhere is None:
            raise TapeError(f"tracefork: blob {sha[:12]} is missing from the tape.")
        return self._elsewhere(sha)

    def _shape(self, sha: str) -> _Shape:
        """Return what a blob is made of, one level down."""
        number, segment, record = self._blobs[sha]
        base, place, at = record.base, 0, record.at
        if base in self._blobs and self._blobs[base][0] >= number:
            raise TapeError(f"tracefork: blob {sha[:12]} rests on a later one.")
        shape = _Shape(base, segment, [], [])
        for piece in record.pieces or [[record.size]]:
            if (
                len(piece) not in (1, 2)
                or min(piece) < 0
                or (base is None and len(piece) == 2)
                or (place := place + piece[-1]) > record.size
            ):
                raise TapeError(
                    f"tracefork: blob {sha[:12]} is no delta of anything, "
                    "or does not have the size it declares."
                )
            shape.places.append(place - piece[-1])
            shape.sources.append((len(piece) == 2, piece[0] if len(piece) == 2 else at))
            at += piece[0] if len(piece) == 1 else 0
        if place != record.size:
            raise TapeError(f"tracefork: blob {sha[:12]} does not have the size it declares.")
        shape.places.append(place)
        return shape

    def _pieces(self, shape: _Shape, start: int, length: int) -> Iterator[bytes | _Range]:
        """Yield what makes the `length` bytes of a blob from `start` on, one level down."""
        end = start + length
        if not 0 <= start <= end <= shape.places[-1]:
            raise TapeError("tracefork: a blob takes bytes from where there are none.")
        first = bisect_right(shape.places, start, hi=len(shape.sources)) - 1
        for i in range(first, len(shape.sources)):
            place, (copied, source) = shape.places[i], shape.sources[i]
            low, high = max(start, place), min(end, shape.places[i + 1])
            if place >= end:
                break
            if low < high and copied and shape.base is not None:
                yield shape.base, source + low - place, high - low
            elif low < high:
                yield _cut(self._bodies.bodies(shape.segment), source + low - place, high - low)


def _cut(data: bytes, start: int, length: int) -> bytes:
    if not 0 <= start <= start + length <= len(data):
        raise TapeError("tracefork: a blob takes bytes from where there are none.")
    return data if length == len(data) else data[start : start + length]
