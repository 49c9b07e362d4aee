"""Decide how each body of a recording is stored: once, and against an earlier one that is like it.

The likeliest base is the last body of the same lane and endpoint. A chain of deltas is begun anew
where reading it would come to more than about twice the plain size.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tracefork_core.errors import TapeError
from tracefork_core.tape import delta
from tracefork_core.tape.blobs import MOST_PIECES, BlobRecord
from tracefork_core.tape.event import RequestRecord
from tracefork_core.tape.schema import LARGEST

_WORTH_A_DELTA = 2048
_CANDIDATES = 64
_TRIES = 3
_CANDIDATE_BYTES = 64 * 1024 * 1024

Like = tuple[str, str]
"""An endpoint and a lane: who asks again where, sends nearly the same again."""


def likes(request: RequestRecord, lane: str) -> tuple[Like, Like]:
    """Return what names the bodies that a request, and its answer, are likely to be like."""
    endpoint = f"{request.method} {urlsplit(request.url).path}"
    return (f"{endpoint} >", lane), (f"{endpoint} <", lane)


@dataclass(slots=True)
class _Candidate:
    """A body that later ones may be like. `cost` and `depth` are those of its chain."""

    sha: str
    data: bytes
    cost: int
    depth: int


@dataclass
class BlobWriter:
    """Decides how each body is stored."""

    _stored: set[str] = field(default_factory=set)
    _shared: set[str] = field(default_factory=set)
    _candidates: OrderedDict[Like, _Candidate] = field(default_factory=OrderedDict)

    def put(self, data: bytes, sha: str, at: int, like: Like) -> tuple[BlobRecord, bytes] | None:
        """Return the record and the new bytes of a body, or None where the tape has it.

        `like` names the bodies it is likely to continue.

        Raises:
            TapeError: there is more of it than a tape takes.
        """
        if not data or sha in self._stored or sha in self._shared:
            return None
        if len(data) > LARGEST:
            raise TapeError(
                f"tracefork: a body of {len(data)} bytes does not go onto a tape; "
                f"the largest that does has {LARGEST}."
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
        """Store nothing that lies on a parent already."""
        self._shared.update(shas)

    def expect(self, data: bytes, sha: str, like: Like) -> None:
        """Expect bodies like one that lies on a parent."""
        self._remember(like, _Candidate(sha, data, 0, 0))

    def forget(self) -> None:
        """Believe nothing to be stored: a transaction was rolled back."""
        self._stored.clear()
        self._candidates.clear()

    def _best(self, data: bytes, like: Like) -> tuple[_Candidate | None, list[list[int]]]:
        """Return the base to store a body against, which is the likeliest if that is good."""
        best, best_pieces, most = None, [], len(data) // 4
        for candidate in self._likely(like):
            pieces = delta.difference(data, candidate.data)
            copied = delta.copied(pieces)
            if copied <= most or self._is_dear(data, candidate, pieces, copied):
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

    def _is_dear(self, data: bytes, base: _Candidate, pieces: list[list[int]], copied: int) -> bool:
        """Return whether reading the chain would come to more than twice the plain size."""
        cost = base.cost + len(data) - copied
        return cost > 2 * len(data) + 4096 or base.depth + len(pieces) > MOST_PIECES

    def _remember(self, like: Like, candidate: _Candidate) -> None:
        if len(candidate.data) < _WORTH_A_DELTA:
            return
        self._candidates[like] = candidate
        self._candidates.move_to_end(like)
        while len(self._candidates) > _CANDIDATES or (
            len(self._candidates) > 1
            and sum(len(one.data) for one in self._candidates.values()) > _CANDIDATE_BYTES
        ):
            self._candidates.popitem(last=False)
