"""Blobs: how bodies lie on a tape. Each body is stored once, under the sha256 of its plain bytes.

A body is stored as a delta of an earlier one where that is smaller. Its new bytes lie in the bodies
of the segment that holds its `blob` event; the rest is read from its base, and so on down.

The likeliest base is the last body of the same lane and endpoint: an agent repeats its transcript
there. A chain of deltas ends where reading it would cost more than about twice the plain size; the
next body is stored whole.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape import delta
from tracefork_core.tape.event import RequestRecord
from tracefork_core.tape.schema import LARGEST

EMPTY = hashlib.sha256(b"").hexdigest()
BLOB = "blob"
MOST_PIECES = 16_384
"""The most pieces in all deltas that lead to one blob. A reader allows eight times as many."""
_WORTH_A_DELTA = 2048
_CANDIDATES = 64
_TRIES = 3
_CANDIDATE_BYTES = 64 * 1024 * 1024
_AT_HAND = 8
_AT_HAND_BYTES = 32 * 1024 * 1024

Like = tuple[str, str]
"""An endpoint and a lane: a lane sends nearly the same body to an endpoint again and again."""


class BlobRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a blob lies: `at` in the bodies of its segment, `size` bytes plain.

    With a `base` (an address), `pieces` are its delta: `[n]` new bytes, `[offset, n]` of the base.
    """

    sha: str
    size: int
    at: int
    base: str | None = None
    pieces: list[list[int]] = []


def likes(request: RequestRecord, lane: str) -> tuple[Like, Like]:
    """Return where to look for the base of a request's body, and for that of its response's."""
    endpoint = f"{request.method} {urlsplit(request.url).path}"
    return (f"{endpoint} >", lane), (f"{endpoint} <", lane)


@dataclass(slots=True)
class _Candidate:
    """A body that may be the base of later ones. `cost` and `depth` are those of its chain."""

    sha: str
    data: bytes
    cost: int
    depth: int


@dataclass
class BlobWriter:
    """Decides how each body of a recording is stored."""

    _stored: set[str] = field(default_factory=set)
    _shared: set[str] = field(default_factory=set)
    _candidates: OrderedDict[Like, _Candidate] = field(default_factory=OrderedDict)

    def put(self, data: bytes, sha: str, at: int, like: Like) -> tuple[BlobRecord, bytes] | None:
        """Return the record and the new bytes of a body, or None if the tape has the body.

        `like` says where to look for its base.

        Raises:
            TapeError: the body is larger than `LARGEST`.
        """
        if not data or sha in self._stored or sha in self._shared:
            return None
        if len(data) > LARGEST:
            raise TapeError(
                f"tracefork: cannot record a body of {len(data)} bytes; the largest body that a "
                f"tape can hold has {LARGEST} bytes."
            )
        self._stored.add(sha)
        if len(data) < _WORTH_A_DELTA:
            return BlobRecord(sha, len(data), at), data
        base, pieces = self._best(data, like)
        new = delta.fresh(data, pieces) if base else data
        cost, depth = len(new), len(pieces)
        if base is not None:
            cost, depth = cost + base.cost, depth + base.depth
        self._remember(like, _Candidate(sha, data, cost, depth))
        return BlobRecord(sha, len(data), at, base.sha if base else None, pieces), new

    def share(self, shas: Iterable[str]) -> None:
        """Store none of these bodies: the parent has them."""
        self._shared.update(shas)

    def expect(self, data: bytes, sha: str, like: Like) -> None:
        """Take a body of the parent as a possible base."""
        self._remember(like, _Candidate(sha, data, 0, 0))

    def forget(self) -> None:
        """Start over: a transaction was rolled back, so no body is sure to be stored."""
        self._stored.clear()
        self._candidates.clear()

    def _best(self, data: bytes, like: Like) -> tuple[_Candidate | None, list[list[int]]]:
        """Return the base to store a body against: the likeliest one, if that is good enough."""
        best, best_pieces, most = None, [], len(data) // 4
        for candidate in self._likely(like):
            pieces = delta.difference(data, candidate.data)
            copied = delta.copied(pieces)
            if copied <= most or self._is_expensive(data, candidate, pieces, copied):
                continue
            best, best_pieces, most = candidate, pieces, copied
            if copied > len(data) // 2:
                break
        return best, best_pieces

    def _likely(self, like: Like) -> Iterator[_Candidate]:
        """Yield the last body of this lane, then those of other lanes at the same endpoint."""
        if (own := self._candidates.get(like)) is not None:
            yield own
        others = [key for key in reversed(self._candidates) if key[0] == like[0] and key != like]
        for key in others[:_TRIES]:
            yield self._candidates[key]

    def _is_expensive(
        self, data: bytes, base: _Candidate, pieces: list[list[int]], copied: int
    ) -> bool:
        """Return whether reading the chain would cost more than twice the plain size."""
        cost = base.cost + len(data) - copied
        return cost > 2 * len(data) + 4096 or base.depth + len(pieces) > MOST_PIECES

    def _remember(self, like: Like, candidate: _Candidate) -> None:
        if len(candidate.data) < _WORTH_A_DELTA:
            return
        self._candidates[like] = candidate
        self._candidates.move_to_end(like)
        while len(self._candidates) > _CANDIDATES or (
            len(self._candidates) > 1
            and sum(len(held.data) for held in self._candidates.values()) > _CANDIDATE_BYTES
        ):
            self._candidates.popitem(last=False)


class Bodies(Protocol):
    """Where the new bytes of blobs lie."""

    @property
    def most(self) -> int:
        """The largest size that a blob of this tape may declare."""

    def bodies(self, segment: int) -> bytes:
        """Return the plain bodies of a segment, one after the other."""


class BlobReader:
    """The blobs of one open tape. `elsewhere` returns those that its parent holds."""

    def __init__(self, bodies: Bodies, elsewhere: Callable[[str], bytes] | None = None) -> None:
        self._bodies = bodies
        self._elsewhere = elsewhere
        self._blobs: dict[str, tuple[int, int, BlobRecord]] = {}
        self._plain: OrderedDict[str, bytes] = OrderedDict()
        self._plain_bytes = 0
        self._unreadable: set[str] = set()

    def add(self, segment: int, record: BlobRecord) -> None:
        """Learn where a blob lies. Blobs are added in the order of the log."""
        self._blobs.setdefault(record.sha, (len(self._blobs), segment, record))

    def __iter__(self) -> Iterator[str]:
        return iter(self._blobs)

    def get(self, sha: str) -> bytes:
        """Return the plain bytes at an address.

        Raises:
            TapeError: the blob is missing or corrupt.
        """
        if (held := self._plain.get(sha)) is not None:
            self._plain.move_to_end(sha)
            return held
        if sha not in self._blobs:
            if self._elsewhere is not None:
                return self._elsewhere(sha)
            raise _missing(sha)
        try:
            data = self._read(sha)
        except TapeError:
            self._unreadable.add(sha)  # Blobs above it are not tried: this one may have taken long.
            raise
        if (actual := hashlib.sha256(data).hexdigest()) != sha:
            raise _corrupt(sha, f"its bytes have the sha256 {actual[:12]}")
        self._plain[sha] = data
        self._plain_bytes += len(data)
        while len(self._plain) > _AT_HAND or self._plain_bytes > _AT_HAND_BYTES:
            self._plain_bytes -= len(self._plain.popitem(last=False)[1])
        return data

    def _read(self, sha: str) -> bytes:
        """Follow the deltas from a blob down to new bytes."""
        number, segment, record = self._blobs[sha]
        size, most = record.size, min(LARGEST, self._bodies.most)
        if not 0 <= size <= most:
            raise _corrupt(sha, f"it declares {size} bytes, and a body here has at most {most}")
        if record.base is None and not record.pieces:
            return bytes(self._new_bytes(sha, segment, record.at, size))
        composer = delta.Composer(f"body {sha[:12]}", size, 8 * MOST_PIECES)
        name = sha
        while (plain := self._at_hand(name)) is None:
            if name in self._unreadable:
                raise _corrupt(sha, f"it is a delta of body {name[:12]}, which cannot be read")
            number, segment, record = self._blobs[name]
            pieces = record.pieces or [[record.size]]
            new_bytes = partial(self._new_bytes, sha, segment, record.at)
            if not composer.add(record.size, pieces, new_bytes):
                return composer.body
            base = record.base
            if base is None or (base in self._blobs and self._blobs[base][0] >= number):
                raise _corrupt(sha, "it is a delta of a later body, or of none")
            name = base
        composer.end(plain)
        return composer.body

    def _at_hand(self, sha: str) -> bytes | None:
        """Return a blob that was read already, or that the parent holds."""
        if (held := self._plain.get(sha)) is not None or sha in self._blobs:
            return held
        if self._elsewhere is None:
            raise _missing(sha)
        return self._elsewhere(sha)

    def _new_bytes(self, sha: str, segment: int, at: int, count: int) -> memoryview:
        bodies = self._bodies.bodies(segment)
        if not 0 <= at <= at + count <= len(bodies):
            raise _corrupt(sha, "its new bytes lie beyond the end of their segment")
        return memoryview(bodies)[at : at + count]


def _missing(sha: str) -> TapeError:
    return TapeError(f"tracefork: body {sha[:12]} is missing from the tape.")


def _corrupt(sha: str, why: str) -> TapeError:
    return TapeError(f"tracefork: body {sha[:12]} is corrupt: {why}.")
