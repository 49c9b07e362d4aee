r"""Decode one layer of escapes, and map the decoded bytes back to where they stand encoded.

A token that follows an escape has no boundary in the encoded text: the byte before it is the `n` of
`\n` or a digit of `%3D`. An escape inside a token hides the token itself. So a text is searched as
it is, and where it has escapes also as it reads without them. `peel` removes one layer of every
kind at once; what is nested is peeled again. The kinds are JSON and Python strings, percent
encoding, HTML entities, quoted-printable and the colours of a terminal.

To decode all kinds at once reads some text wrongly, `C:\new` for example. That costs nothing: the
decoded text is only searched, and what is written is the encoded text with a placeholder in it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

DEEPEST = 6
"""Layers that are peeled, one over the other."""

_NAMED = {
    b"quot": b'"',
    b"apos": b"'",
    b"amp": b"&",
    b"lt": b"<",
    b"gt": b">",
    b"nbsp": b" ",
    b"Tab": b"\t",
    b"NewLine": b"\n",
    b"plus": b"+",
    b"sol": b"/",
    b"equals": b"=",
    b"colon": b":",
    b"commat": b"@",
    b"lowbar": b"_",
    b"hyphen": b"-",
    b"dash": b"-",
    b"period": b".",
    b"percnt": b"%",
    b"bsol": b"\\",
    b"num": b"#",
    b"semi": b";",
}
_CONTROL = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
    b"a": b"\a",
    b"0": b"\0",
    b"e": b"\x1b",
}
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
    rb"|x[0-9A-Fa-f]{2}|033|[nrtbfvae0]|[\"'/\\])"
    rb"|%[0-9A-Fa-f]{2}"
    rb"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,7});"
    rb"|=[0-9A-F]{2}"
    rb"|\x1b\[[0-9;:?]*[A-Za-z]"
)
_SOFT_BREAK = re.compile(rb"=(?<=[^\r\n]{40}=)[ \t]*\r?\n(?!--|\s|\Z)")
"""The line break of quoted-printable, and not the end of a line of base64."""
_COLOUR = re.compile(rb"\x1b\[[0-9;:?]*[A-Za-z]\Z")
_STARTERS = re.compile(rb"[\\%&=\x1b]")
_NEAR = 16
"""Bytes before a token in which the escape that ends there begins, once or more often escaped."""
_BEFORE = 48


class _Part(NamedTuple):
    """A piece of a view: where it begins there, its range encoded, and whether it is an escape."""

    begin: int
    start: int
    end: int
    is_escape: bool


class View:
    """Bytes without one layer of escapes, and where each of them stands in the encoded bytes."""

    def __init__(self, data: bytes, encoded: bytes, parts: Sequence[_Part]) -> None:
        self.data = data
        self._encoded = encoded
        self._parts = parts
        self._begins = [part.begin for part in parts]

    def encoded(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the encoded bytes that spell `data[start:end]`."""
        first, last = self._part(start), self._part(end - 1)
        begin = first.start if first.is_escape else first.start + start - first.begin
        return begin, last.end if last.is_escape else last.start + end - last.begin

    def spelled(self, text: bytes, start: int, end: int) -> bytes:
        """Return a text spelled like `data[start:end]`, which it replaces."""
        if _WORD.fullmatch(text):
            return text
        spelling: dict[int, bytes] = {}
        for number in range(bisect_right(self._begins, start) - 1, len(self._parts)):
            part = self._parts[number]
            if part.begin >= end:
                break
            if part.is_escape:
                spelling.setdefault(self.data[part.begin], self._encoded[part.start : part.end])
        percent = [raw for char, raw in spelling.items() if char in b"+/=" and raw[0] == _PERCENT]
        for char in b"+/=" if percent else b"":
            spelling.setdefault(char, percent[0][:-2] + b"%02X" % char)
        return b"".join(spelling.get(char, bytes([char])) for char in text)

    def _part(self, at: int) -> _Part:
        return self._parts[bisect_right(self._begins, at) - 1]


_WORD = re.compile(rb"[\w-]*")
_PERCENT = ord("%")


def peel(data: bytes) -> View | None:
    """Return `data` without one layer of escapes, or None if it has none."""
    # Alone: `KEY=`, a soft break and `4D` are no escape.
    return without(_SOFT_BREAK, data) or _replaced(_ESCAPE, data, _decoded)


def without(pattern: re.Pattern[bytes], data: bytes) -> View | None:
    """Return `data` without what a pattern matches, or None if it matches nothing."""
    return _replaced(pattern, data, lambda _: b"")


def _replaced(
    pattern: re.Pattern[bytes], data: bytes, change: Callable[[bytes], bytes | None]
) -> View | None:
    pieces: list[bytes] = []
    parts: list[_Part] = []
    begin = at = 0
    for match in pattern.finditer(data):
        start, end = match.span()
        plain = change(match[0])
        if plain is None:
            continue
        if start > at:
            parts.append(_Part(begin, at, start, is_escape=False))
            pieces.append(data[at:start])
            begin += start - at
        if plain:
            parts.append(_Part(begin, start, end, is_escape=True))
            pieces.append(plain)
            begin += len(plain)
        at = end
    if not at:
        return None
    if at < len(data):
        parts.append(_Part(begin, at, len(data), is_escape=False))
        pieces.append(data[at:])
    return View(b"".join(pieces), data, parts)


def may_begin_word(data: bytes, at: int) -> bool:
    """Return False if no word begins at `at`, without decoding anything."""
    if at == 0 or not data[at - 1 : at].isalnum():
        return True
    return _STARTERS.search(data, max(0, at - _NEAR), at) is not None


def begins_word(data: bytes, at: int) -> bool:
    """Return whether the word at `at` begins there, also if an escape ends before it."""
    if at == 0 or not data[at - 1 : at].isalnum():
        return True
    window = data[max(0, at - _BEFORE) : at]
    for _ in range(DEEPEST):
        if _COLOUR.search(window):
            return True
        view = peel(window)
        if view is None:
            return False
        window = view.data
        if not window or not window[-1:].isalnum():
            return True
    return False


def _decoded(escape: bytes) -> bytes | None:
    """Return what one escape stands for, or None if it stands for nothing."""
    kind, rest = escape[:1], escape[1:]
    if kind == b"\\":
        if rest[:1] == b"u":
            units = bytes.fromhex(rest.replace(b"\\u", b"")[1:].decode())
            return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
        if rest[:1] == b"x":
            return bytes.fromhex(rest[1:].decode())
        return b"\x1b" if rest == b"033" else _CONTROL.get(rest, rest)
    if kind == b"%":
        return bytes.fromhex(rest.decode())
    if kind == b"=":
        return bytes.fromhex(rest.decode())
    if kind == b"&":
        name = rest[:-1]
        if not name.startswith(b"#"):
            return _NAMED.get(name)
        code = int(name[2:], 16) if name[1:2] in b"xX" else int(name[1:])
        if code > 0x10FFFF:
            return None
        return chr(code).encode("utf-8", "surrogatepass")
    return b""
