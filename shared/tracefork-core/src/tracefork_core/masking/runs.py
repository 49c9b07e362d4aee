"""Find the long unbroken runs of a text, in which something may be encoded.

Base64 and escaped tokens are text without a space: a run of letters, digits and the characters of
escapes. Ordinary text has few long runs, and to find them takes a fraction of what a regex takes:
one `translate` makes all these characters equal, and `find` skips what has a gap.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise

from tracefork_core.masking.escapes import without

SHORTEST = 20
"""Characters of the shortest run that is looked into: the shortest token has as many."""

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_ESCAPED = _BASE64 + b".~\\%=&#;:[\x1b"
_CLASS = bytes(97 if byte in _ESCAPED + b"\r\n" else 32 for byte in range(256))
_NEEDLE = b"a" * SHORTEST
_GAP = b" "
_BEARER = b"Bearer "
_TELLING = (
    (b"%", None),
    (b"\x1b", None),
    (b"u00", re.compile(rb"u00[0-7]")),
    (b"\\x", None),
    (b"\\033[", None),
    (b"\\e[", None),
    (b"\\/", None),
    (b"&", re.compile(rb"&(?:#|[A-Za-z]{2,7};)")),
    (b"=", re.compile(rb"=(?:[0-9A-F]{2}|\\*r?\\*n|(?<=[^\r\n]{40}=)\r?\n)")),
    (b"\\", re.compile(rb"\\(?<=[A-Za-z0-9+/_-]{56}\\)\\*[rn]")),
)
"""Escapes that may hide a part of a token. Those of white space and quotes cannot."""
_ESCAPES = re.compile(rb"[\\%&=\x1b]")
_LINE_BREAK = re.compile(
    rb"\n(?<=[A-Za-z0-9+/_-]{56}\n)(?!--)(?=[A-Za-z0-9+/_-])"
    rb"|\r\n(?<=[A-Za-z0-9+/_-]{56}\r\n)(?!--)(?=[A-Za-z0-9+/_-])"
)
_LINE_WIDTH = 56
"""The shortest line of a base64 text in lines."""
_PLAIN_BASE64 = bytes(
    (b"+/"[b"-_".index(byte)] if byte in b"-_" else byte) if byte in _BASE64 else ord("A")
    for byte in range(256)
)
"""Makes a text base64 throughout: other bytes become zeros, so its length stays the same."""
_FIRST = bytes(97 if byte in b"CDGIJKLMNOPQRSTUVWXYZabcdef" else ord(" ") for byte in range(256))
_TEXT = b"a" * 5
_IS_TEXT = bytes(97 if 9 <= byte <= 126 else 32 for byte in range(256))
_PLAIN_TEXT = b"a" * 12
_PADDING = b"(?:=(?![0-9A-F]{2})){0,2}"  # `=1B` is an escape of quoted-printable.
_WIDEST = 1024
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/_-]{16,}")
_BASE64_LINE = re.compile(rb"[A-Za-z0-9+/_-]*")
_NEXT_LINE = re.compile(rb"\r?\n(?!--)([A-Za-z0-9+/_-]+)")
_NEWLINE = ord("\n")
_SOFT = ord("=")
_LONGEST_HELD = 16 * 1024
_SHORTEST_HELD = 8
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URLSAFE = bytes.maketrans(b"+/", b"-_")


def find(data: bytes, start: int, stop: int) -> Runs | None:
    """Return the long runs of `data[start:stop]`, or None if it has none."""
    if stop - start < SHORTEST:
        return None
    classes = data[start:stop].translate(_CLASS)
    at = classes.find(_NEEDLE)
    return None if at < 0 else Runs(data, start, classes, at)


class Runs:
    """The long runs of a text, joined into one that is searched instead of it.

    Attributes:
        joined: the runs, with a NUL between each two.
    """

    def __init__(self, data: bytes, start: int, classes: bytes, at: int) -> None:
        self.data = data
        self._begins: list[int] = []  # Of each run in the joined text, and in `data`.
        self._starts: list[int] = []
        pieces: list[bytes] = []
        size = 0
        while at >= 0:
            end = classes.find(_GAP, at + SHORTEST)
            if end < 0:
                end = len(classes)
            first = start + at
            if data.startswith(_BEARER, max(start, first - len(_BEARER))):
                first -= len(_BEARER)
            pieces.append(data[first : start + end])
            self._begins.append(size)
            self._starts.append(first)
            size += start + end - first + 1
            at = classes.find(_NEEDLE, end)
        self.joined = b"\0".join(pieces)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield where each run begins and ends in the text."""
        ends = [*(begin - 1 for begin in self._begins[1:]), len(self.joined)]
        for begin, start, end in zip(self._begins, self._starts, ends, strict=True):
            yield start, start + end - begin

    def place(self, at: int) -> int:
        """Return where a byte of the joined text is in the text."""
        number = bisect_right(self._begins, at) - 1
        return self._starts[number] + at - self._begins[number]

    def end(self, at: int) -> int:
        """Return where the run ends that has a byte of the text."""
        number = bisect_right(self._starts, at) - 1
        size = self._begins[number + 1] - 1 if number + 1 < len(self._begins) else len(self.joined)
        return self._starts[number] + size - self._begins[number]

    def with_escapes(self) -> list[tuple[int, int]]:
        """Return the runs with escapes that may hide a part of a token."""
        joined = self.joined
        if not _ESCAPES.search(joined):
            return []
        kinds = [
            re.compile(re.escape(sign)) if pattern is None else pattern
            for sign, pattern in _TELLING
            if sign in joined and (pattern is None or pattern.search(joined))
        ]
        if not kinds:
            return []
        return [run for run in self if any(kind.search(self.data, *run) for kind in kinds)]

    def decoded(self) -> Iterator[tuple[bytes, int]]:
        """Yield the pieces of the runs that are text if they are base64, and where each begins."""
        # First without line breaks: what is read to its end counts before a part of it.
        if b"\n" in self.joined and (flat := without(_LINE_BREAK, self.joined)):
            for plain, begin in _texts(flat.data):
                yield plain, self.place(flat.encoded(begin, begin + 1)[0])
        for plain, begin in _texts(self.joined):
            yield plain, self.place(begin)


def _texts(joined: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield what decodes to text, and where that begins; where base64 begins in a run is not known.

    The first of four characters holds six bits of the first of three bytes. So it tells text from
    anything else, and a fourth of all characters is looked at for each place to begin.
    """
    classes = joined.translate(_FIRST)
    flat = b""
    for offset in range(4):
        firsts = classes[offset::4]
        at = firsts.find(_TEXT)
        while at >= 0:
            flat = flat or joined.translate(_PLAIN_BASE64) + b"AAA"  # Without padding, it is whole.
            upto = firsts.find(_GAP, at)
            upto = len(firsts) if upto < 0 else upto
            end = min(offset + 4 * (upto + 1), len(flat))
            for piece in _BASE64_RUN.finditer(joined, offset + 4 * max(0, at - 1), end):
                begin = piece.start() + (offset - piece.start()) % 4
                plain = binascii.a2b_base64(
                    flat[begin : begin + (piece.end() + 3 - begin) // 4 * 4]
                )
                if plain.translate(_IS_TEXT).find(_PLAIN_TEXT) >= 0:  # A regex is slower.
                    yield plain, begin
            at = firsts.find(_TEXT, upto)


def masked(
    data: bytes, start: int, end: int, mask: Callable[[bytes], bytes]
) -> tuple[int, int, bytes] | None:
    """Return the range of a base64 text that changes if it is masked, and its new text.

    The text is decoded, masked and encoded again to its end, because the placeholder has another
    length, which shifts the groups of four.

    Args:
        data: the bytes with the base64 text.
        start: where a group of four begins, before the first secret.
        end: the end of the run.
        mask: returns plain bytes without their secrets.
    """
    width, column = _line(data, start, end)
    spelled = max(
        (match for match in _spellings(data, start, end, width, column) if match),
        key=lambda match: match.end(),
    )
    bare = spelled[0].rstrip(b"=").translate(_TO_STANDARD, b"\r\n")
    left_over = len(bare) % 4 == 1
    bare = bare[: len(bare) - left_over]
    padding = min(-len(bare) % 4, len(spelled[0]) - len(spelled[0].rstrip(b"=")))
    plain = base64.b64decode(bare + b"=" * (-len(bare) % 4))
    hidden = mask(plain)
    if hidden == plain:
        return None
    encoded = base64.b64encode(hidden)
    if b"-" in spelled[0] or b"_" in spelled[0]:
        encoded = encoded.translate(_TO_URLSAFE)
    if len(bare) % 4 and not padding:
        encoded = encoded.rstrip(b"=")
    if width:
        newline = b"\r\n" if b"\r\n" in data[start - column : end] else b"\n"
        cuts = [0, *range(width - column, len(encoded), width), len(encoded)]
        encoded = newline.join(encoded[at:upto] for at, upto in pairwise(cuts))
    pairs = enumerate(zip(spelled[0], encoded, strict=False))
    same = next((at for at, (old, new) in pairs if old != new), min(len(spelled[0]), len(encoded)))
    end = start + len(spelled[0].rstrip(b"=")) - left_over + padding
    return start + same, end, encoded[same:]


def _spellings(
    data: bytes, start: int, end: int, width: int, column: int
) -> Iterator[re.Match[bytes] | None]:
    """Yield what of a run is base64, in each of the two alphabets and in lines of a width."""
    for letters in (b"[A-Za-z0-9+/]", b"[A-Za-z0-9_-]"):
        pattern = letters + b"*"
        if width:
            rest = width - column
            pattern = b"%b{%d}(?:\\r?\\n%b{%d})*(?:\\r?\\n(?!--)%b{1,%d}(?=[\\r\\n=]|\\Z))?" % (
                *(letters, rest, letters, width, letters, width),
            )
            pattern = b"(?:%b|%b{0,%d})" % (pattern, letters, rest)
        yield re.compile(pattern + _PADDING).match(data, start, end)


def _line(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return how wide the lines of a base64 text are, and the column of `start`; 0, 0 if none."""
    far = max(0, start - _WIDEST)
    begin = far + len(data[far:start].rstrip(_BASE64))
    line = _BASE64_LINE.match(data, start, end)
    line_end = line.end() if line else start
    if data[begin - 1 : begin] == b"\n":
        before = data[far:begin].rstrip(b"\r\n")
        width = len(before) - len(before.rstrip(_BASE64))
        if width >= _LINE_WIDTH and begin - far - len(before) <= 2:
            return width, start - begin
    below = _NEXT_LINE.match(data, line_end, end)
    if below is None:
        return 0, 0
    width = max(len(below[1]), line_end - begin)
    return (width, width - line_end + start) if width >= _LINE_WIDTH else (0, 0)


def last(data: bytes, start: int) -> int:
    """Return where the run begins with which `data` ends; `len(data)` if it is short."""
    end, start = len(data), max(start, len(data) - _LONGEST_HELD)
    at = len(data[start:].rstrip(_ESCAPED)) + start
    while at > start and data[at - 1] == _NEWLINE:
        above = len(data[start:at].rstrip(b"\r\n")) + start
        goes_on = data[above - 1] == _SOFT
        line = len(data[start:above].rstrip(_ESCAPED if goes_on else _BASE64)) + start
        if not goes_on and above - line < _LINE_WIDTH:
            break
        at = line
    return at if end - at >= _SHORTEST_HELD else end
