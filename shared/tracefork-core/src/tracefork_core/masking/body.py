"""Mask the body of a response that arrives in pieces.

A secret may be split between pieces. Bytes that could be the beginning of a secret therefore wait
for the next piece before they go onto the tape. Only the tape waits: the agent receives every piece
at once. A body with a content coding is unpacked to be searched (`decoder`).
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from tracefork_core.masking.redactor import Redactor, replace
from tracefork_core.masking.spellings import Match

_BEFORE = 64
"""Decided bytes that stay in the buffer: patterns look back to what precedes a token."""
_TELLING = 6
"""A cut-off body must not end in so many bytes of a secret, or more."""

Decode = Callable[[bytes], bytes]
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

    def agreeing(self, headers: Sequence[Pair], size: int, *, whole: bool) -> list[Pair]:
        """Return the response headers adapted to this body, which had `size` bytes originally."""
        if self.unpacked:
            return [pair for pair in headers if pair[0].lower() not in _OF_THE_BODY]
        if not whole:
            return list(headers)
        masked_size, original = sum(map(len, self.pieces)), ("content-length", str(size))
        return [
            (name, str(masked_size)) if (name.lower(), value) == original else (name, value)
            for name, value in headers
        ]


class MaskedBody:
    """Masks one body, from its first piece to its end."""

    def __init__(self, redactor: Redactor, coding: str | None) -> None:
        self._redactor = redactor
        self._coding = coding
        self._unpack = decoder(coding) if coding else None
        self._dirty = False
        self._buffer = b""
        self._decided = 0
        self._held: list[bytes] = []

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """Take the next piece and return the bytes that may go onto the tape now.

        `last` tells that no piece follows; `finish` then returns the masked rest.
        """
        if self._redactor.patterns:
            return (
                b""  # A user's pattern may match across any pieces: only the whole body can tell.
            )
        if last and self._unpack is None:
            self._search(self._buffer + data)
            return b""
        if self._unpack is None:
            return self._decide(data)
        try:
            self._decide(self._unpack(data))
        except Exception:  # noqa: BLE001 - not in this coding: search the bytes as they are
            self._unpack = None
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
        if not (self._dirty or self._redactor.patterns or (undecided and not whole)):
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
        return Masked(_in_pieces(plain, body, matches), matches, unpacked is not None)

    def _decide(self, data: bytes) -> bytes:
        buffer, start = self._buffer + data, self._decided
        matches = self._search(buffer)
        upto = max(start, self._redactor.undecided(buffer, start))
        for match in reversed(matches):
            if match.end > upto or (match.may_grow and match.end == len(buffer)):
                upto = max(start, min(upto, match.start))
        over = [match.seen_from(start) for match in matches if match.end <= upto]
        self._buffer = buffer[max(0, upto - _BEFORE) :]
        self._decided = min(upto, _BEFORE)
        return replace(buffer[start:upto], over)

    def _search(self, buffer: bytes) -> list[Match]:
        matches = [m for m in self._redactor.find(buffer) if m.end > self._decided]
        self._dirty = self._dirty or bool(matches)
        return matches

    def _unpacked(self, pieces: Sequence[bytes]) -> list[bytes] | None:
        unpack = decoder(self._coding) if self._coding else None
        if unpack is None:
            return None
        try:
            return [unpack(piece) for piece in pieces]
        except Exception:  # noqa: BLE001 - not in this coding
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


def decoder(coding: str) -> Decode | None:
    """Return a function that unpacks a body piece by piece; None for an unknown coding.

    The function raises an exception for bytes that are not in that coding.
    """
    match coding.strip().lower():
        case "gzip" | "x-gzip":
            return _Members(31)
        case "deflate":
            return _Deflate()
        case "zstd":
            if sys.version_info >= (3, 14):
                from compression import zstd
            else:
                from backports import zstd
            return zstd.ZstdDecompressor().decompress
        case "br":
            for name in ("brotli", "brotlicffi"):
                try:
                    unpack: Decode = import_module(name).Decompressor().process
                except ImportError:
                    continue
                return unpack
    return None


class _Members:
    """Unpacks gzip data of one or more members."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._unpacker = zlib.decompressobj(bits)

    def __call__(self, data: bytes) -> bytes:
        plain = self._unpacker.decompress(data)
        while self._unpacker.eof and (rest := self._unpacker.unused_data):
            self._unpacker = zlib.decompressobj(self._bits)
            plain += self._unpacker.decompress(rest)
        return plain


class _Deflate:
    """Unpacks deflate, with or without the zlib header that some servers leave out."""

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj()
        self._seen = b""

    def __call__(self, data: bytes) -> bytes:
        try:
            plain = self._unpacker.decompress(data)
        except zlib.error:
            if len(self._seen) > 2:
                raise
            self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            plain = self._unpacker.decompress(self._seen + data)
        self._seen += data[:3]
        return plain
