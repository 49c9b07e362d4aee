"""Mask the body of a response that arrives in pieces.

A secret may be split between pieces. Bytes that could be the beginning of a secret therefore wait
for the next piece before they go onto the tape. Only the tape waits: the agent receives every piece
at once. A body with a content coding is unpacked to be searched, up to a bound (`unpacking`). One
that cannot be unpacked stays as it is and counts as `unsearched`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracefork_core.masking.agreeing import agreeing
from tracefork_core.masking.frames import reframed
from tracefork_core.masking.redactor import Redactor, replace
from tracefork_core.masking.spellings import Match
from tracefork_core.unpacking import UnpackError, unpacker

_BEFORE = 64
"""Decided bytes that stay in the buffer: patterns look back to what precedes a token."""
_MOST_UNDECIDED = 256 * 1024
"""A secret in a base64 text may grow with each piece. From here on, its end is not looked for until
the body has ended: to search all of it again for each piece takes quadratic time."""
_TELLING = 6
"""A cut-off body must not end in so many bytes of a secret, or more."""

Pair = tuple[str, str | None]
_OF_THE_BODY = frozenset({"content-encoding", "content-length"})


@dataclass(frozen=True, slots=True)
class Masked:
    """A masked body, in as many pieces as it arrived in; some may be empty.

    `unpacked` tells that its content coding was removed, because a secret in it was replaced.
    """

    pieces: list[bytes]
    matches: list[Match]
    unpacked: bool

    def agreeing(self, headers: Sequence[Pair], arrived: bytes, *, whole: bool) -> list[Pair]:
        """Return the response headers adapted to this body, which arrived with other bytes."""
        if self.unpacked:
            headers = [pair for pair in headers if pair[0].lower() not in _OF_THE_BODY]
        return agreeing(headers, arrived, b"".join(self.pieces), length=whole)


class MaskedBody:
    """Masks one body, from its first piece to its end.

    `unsearched` tells that its content coding could not be removed: the coding is unknown, the
    bytes are not in it, or they unpack to more than the bound. Only its packed bytes were searched.
    """

    def __init__(self, redactor: Redactor, coding: str | None) -> None:
        self._redactor = redactor
        self._coding = coding
        self._unpack = unpacker(coding) if coding else None
        self.unsearched = coding is not None and self._unpack is None
        self._dirty = False
        self._is_put_off = False
        self._parts = 0
        self._buffer = b""
        self._decided = 0
        self._held: list[bytes] = []

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """Take the next piece and return the bytes that may go onto the tape now.

        `last` tells that no piece follows; `finish` then returns the masked rest.
        """
        # A user's pattern may match across any pieces, so only the whole body can tell. Once a
        # secret was found in packed bytes, none of them goes onto the tape before `finish`.
        packed_and_dirty = self._dirty and self._unpack is not None
        if self._redactor.patterns or packed_and_dirty or self._is_put_off:
            return b""
        if last and self._unpack is None:
            self._search(self._buffer + data)
            return b""
        if self._unpack is None:
            return self._decide(data)
        try:
            for block in self._unpack.feed(data):
                self._decide(block)
        except UnpackError:
            self._unpack, self.unsearched = None, True
            self._buffer, self._decided = b"", 0
            return self._decide(b"".join([*self._held, data]))
        self._held.append(data)
        if self._dirty or self._decided < len(self._buffer):
            return b""
        released, self._held = b"".join(self._held), []
        return released

    def finish(self, pieces: Sequence[bytes], *, whole: bool) -> Masked | None:
        """Return the masked body, or None if it stays as it arrived.

        Args:
            pieces: all pieces that arrived.
            whole: whether the body arrived completely.
        """
        undecided = self._decided < len(self._buffer)
        # What was searched in parts is searched as a whole, too: where a body was cut must not
        # decide what is masked in it. `tracefork redact` searches the same whole.
        in_parts = self._parts > 1
        if not (self._dirty or in_parts or self._redactor.patterns or (undecided and not whole)):
            return None
        unpacked = self._unpacked(pieces)
        plain = pieces if unpacked is None else unpacked
        body = plain[0] if len(plain) == 1 else b"".join(plain)
        matches = self._redactor.find(body)
        cut = None if whole else self._redactor.cut_off(body)
        if cut and len(body) - cut.start >= _TELLING:
            matches = [*(match for match in matches if match.end <= cut.start), cut]
        if not matches:
            return None
        pieces = _in_pieces(plain, body, reframed(body, matches))
        return Masked(pieces, matches, unpacked is not None)

    def _decide(self, data: bytes) -> bytes:
        buffer, start = self._buffer + data, self._decided
        if len(buffer) - len(data) > _MOST_UNDECIDED:
            self._is_put_off = self._dirty = True
            self._buffer = b""
            return b""
        matches = self._search(buffer)
        upto = max(start, self._redactor.held(buffer, start))
        for match in reversed(matches):
            if match.end > upto or (match.may_grow and match.end == len(buffer)):
                upto = max(start, min(upto, match.start))
        over = [match.seen_from(start) for match in matches if match.end <= upto]
        self._buffer = buffer[max(0, upto - _BEFORE) :]
        self._decided = min(upto, _BEFORE)
        return replace(buffer[start:upto], over)

    def _search(self, buffer: bytes) -> list[Match]:
        self._parts += 1
        matches = [m for m in self._redactor.find(buffer) if m.end > self._decided]
        self._dirty = self._dirty or bool(matches)
        return matches

    def _unpacked(self, pieces: Sequence[bytes]) -> list[bytes] | None:
        unpack = unpacker(self._coding) if self._coding else None
        if unpack is None:
            return None
        try:
            return [b"".join(unpack.feed(piece)) for piece in pieces]
        except UnpackError:
            self.unsearched = True
            return None


def _in_pieces(pieces: Sequence[bytes], body: bytes, matches: Sequence[Match]) -> list[bytes]:
    """Cut a masked body where the original was cut; a placeholder goes where its secret begins."""
    masked, start = [], 0
    left = list(matches)
    for piece in pieces:
        stop = start + len(piece)
        text, at = [], start
        while left and left[0].start < stop:
            match = left[0]
            if match.start >= start:
                text += [body[at : match.start], match.text]
            at = min(match.end, stop)
            if match.end > stop:
                break
            left.pop(0)
        text.append(body[at:stop])
        masked.append(b"".join(text))
        start = stop
    return masked
