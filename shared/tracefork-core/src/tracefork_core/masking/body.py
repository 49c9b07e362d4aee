"""The body of a response on its way to the tape: masked, though it comes in pieces.

What could be the beginning of a secret waits for the next piece, on its way to the tape alone: the
agent has every piece at once.
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
"""Bytes kept of what is decided: what a token may not follow is seen there."""
_TELLING = 6
"""Bytes of a secret that a body which was cut off must not end in."""

Decode = Callable[[bytes], bytes]
Pair = tuple[str, str | None]
_OF_THE_BODY = frozenset({"content-encoding", "content-length"})


@dataclass(frozen=True, slots=True)
class Masked:
    """A body as the tape holds it, in as many pieces as it came in; some may be empty.

    `unpacked` says that its content coding is undone, because something in it was replaced.
    """

    pieces: list[bytes]
    matches: list[Match]
    unpacked: bool

    def agreeing(self, headers: Sequence[Pair], came: int, *, whole: bool) -> list[Pair]:
        """Return the headers of a response as they agree with this body, of `came` bytes before."""
        if self.unpacked:
            return [pair for pair in headers if pair[0].lower() not in _OF_THE_BODY]
        if not whole:
            return list(headers)
        kept, told = sum(map(len, self.pieces)), ("content-length", str(came))
        return [
            (name, str(kept)) if (name.lower(), value) == told else (name, value)
            for name, value in headers
        ]


class MaskedBody:
    """One body, from its first piece to its end."""

    def __init__(self, redactor: Redactor, coding: str | None) -> None:
        self._redactor = redactor
        self._coding = coding
        self._unpack = decoder(coding) if coding else None
        self._dirty = False
        self._buffer = b""
        self._decided = 0
        self._held: list[bytes] = []

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """Return what may go onto the tape now that this piece has come; of the last one nothing.

        What the last one ends in waits for nothing more: `finish` tells what becomes of it.
        """
        if self._redactor.patterns:
            return b""  # Where a match of just any pattern may begin is not known before the end.
        if last and self._unpack is None:
            self._search(self._buffer + data)
            return b""
        if self._unpack is None:
            return self._decide(data)
        try:
            self._decide(self._unpack(data))
        except Exception:  # noqa: BLE001 - not of its coding: bytes like any others
            self._unpack = None
            return self._decide(b"".join([*self._held, data]))
        self._held.append(data)
        if self._dirty or self._decided < len(self._buffer):
            return b""
        released, self._held = b"".join(self._held), []
        return released

    def finish(self, pieces: Sequence[bytes], *, whole: bool) -> Masked | None:
        """Return the body that came in these pieces as it is masked, or None where it stays.

        Args:
            pieces: all that came.
            whole: whether it came to its end.
        """
        undecided = self._decided < len(self._buffer)
        if not (self._dirty or self._redactor.patterns or (undecided and not whole)):
            return None
        unpacked = self._unpacked(pieces)
        came = pieces if unpacked is None else unpacked
        body = came[0] if len(came) == 1 else b"".join(came)
        matches = self._redactor.find(body)
        cut = None if whole else self._redactor.cut_off(body)
        if cut and len(body) - cut.start >= _TELLING:
            matches = [*(match for match in matches if match.end <= cut.start), cut]
        if not matches:
            return None
        return Masked(_in_pieces(came, body, matches), matches, unpacked is not None)

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
        except Exception:  # noqa: BLE001 - not of its coding
            return None


def _in_pieces(pieces: Sequence[bytes], body: bytes, matches: Sequence[Match]) -> list[bytes]:
    """Cut a masked body where it was cut; a placeholder lies where its secret begins."""
    found, start = [], 0
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
        found.append(b"".join(text))
        start = stop
    return found


def decoder(coding: str) -> Decode | None:
    """Return what unpacks the pieces of a body; None for a coding that is not known here.

    What it returns raises an exception where the bytes are not of that coding.
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
    """Unpacks gzip, which may have several members."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._unpacker = zlib.decompressobj(bits)

    def __call__(self, data: bytes) -> bytes:
        found = self._unpacker.decompress(data)
        while self._unpacker.eof and (rest := self._unpacker.unused_data):
            self._unpacker = zlib.decompressobj(self._bits)
            found += self._unpacker.decompress(rest)
        return found


class _Deflate:
    """Unpacks deflate, which some servers send without its zlib header."""

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj()
        self._seen = b""

    def __call__(self, data: bytes) -> bytes:
        try:
            found = self._unpacker.decompress(data)
        except zlib.error:
            if len(self._seen) > 2:
                raise
            self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            found = self._unpacker.decompress(self._seen + data)
        self._seen += data[:3]
        return found
