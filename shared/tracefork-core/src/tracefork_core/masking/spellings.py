r"""Find one secret value in all its spellings: plain, JSON, percent-encoded, hex and base64.

The placeholder has only letters, digits, `-` and `_`. So if an agent encodes a placeholder (as
JSON, base64, …), the result equals the placeholder of the encoded value. That makes a masked tape
replay with another value of the secret.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from tracefork_core.masking.names import SHORTEST
from tracefork_core.masking.runs import SHORTEST as SHORTEST_RUN
from tracefork_core.masking.runs import Runs

_UNRESERVED = re.compile(rb"[A-Za-z0-9._~-]+")
_STANDARD = re.compile(rb"[A-Za-z0-9+/]*((?:=|%3[Dd]){0,2})")
_URLSAFE = re.compile(rb"[A-Za-z0-9_-]*((?:=|%3[Dd]){0,2})")
_GROUP = re.compile(rb"[A-Za-z0-9+/_-]*")
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URLSAFE = bytes.maketrans(b"+/", b"-_")
_ESCAPED = re.compile(rb"[\\%&=\x1b]")
_SHORTEST_ANCHOR = 4
_SKIPPED = (0, 2, 3)
"""Base64 characters that depend on bytes before the value, if it starts at offset 0, 1, 2 of 3."""


class Match(NamedTuple):
    """A secret in some bytes: where it is, its name, and the text that replaces it.

    `may_grow` tells that the following bytes may make the match longer.
    """

    start: int
    end: int
    name: str
    text: bytes
    may_grow: bool = False

    def seen_from(self, offset: int) -> Match:
        """Return the match as it lies in `data[offset:]`, cut at its beginning if needed."""
        start = max(0, self.start - offset)
        return Match(start, self.end - offset, self.name, self.text, self.may_grow)


class _Core(NamedTuple):
    """The part of a value's base64 text that does not depend on the bytes around the value."""

    text: bytes
    skipped: int
    masked: bytes


class Spellings:
    """The spellings of one value, each with the matching spelling of its placeholder."""

    def __init__(self, name: str, value: str, placeholder: bytes) -> None:
        self.name = name
        plain = value.encode("utf-8", "surrogateescape")
        self._literals: dict[bytes, bytes] = {}
        self._long: dict[bytes, bytes] = {}
        self._cores: list[_Core] = []
        self._long_cores: list[_Core] = []
        self._spelled: re.Pattern[bytes] | None = None
        self._anchor = b""
        self._reach = 6 * len(plain)
        self._variants: set[bytes] = set()
        self._placeholder = placeholder
        if _UNRESERVED.fullmatch(plain):
            (self._long if len(plain) >= SHORTEST_RUN else self._literals)[plain] = placeholder
        else:
            self._spelled = re.compile(b"".join(_spellings(value)))
            # The longest piece that every spelling leaves unchanged: cheap to search for first.
            self._anchor = max(_UNRESERVED.findall(plain), key=len, default=b"")
            self._variants = _variants(value)
        if len(plain) >= SHORTEST:
            digits = plain.hex(), placeholder.hex()
            for value, text in (digits, tuple(map(str.upper, digits))):
                kind = self._long if len(value) >= SHORTEST_RUN else self._literals
                kind[value.encode()] = text.encode()
            cores = list(dict.fromkeys(_cores(plain, placeholder)))
            self._long_cores = [core for core in cores if len(core.text) >= SHORTEST_RUN]
            self._cores = [core for core in cores if len(core.text) < SHORTEST_RUN]

    @property
    def is_literal(self) -> bool:
        """Whether the value may occur where there is no long run of text."""
        return bool(self._literals or self._spelled)

    @property
    def is_short(self) -> bool:
        """Whether base64 of the value may be shorter than a long run."""
        return bool(self._cores)

    @property
    def is_odd(self) -> bool:
        """Whether the value has characters that are escaped."""
        return len(self._anchor) >= _SHORTEST_ANCHOR

    def find(self, data: bytes, start: int, stop: int) -> Iterator[Match]:
        """Yield where the value occurs plain, escaped, percent-encoded or in hex.

        Except where that makes a long run of text: see `find_long`.
        """
        yield from self._find(self._literals, data, start, stop)
        if self._spelled is not None and (
            not self._anchor or data.find(self._anchor, start, stop) >= 0
        ):
            for match in self._spelled.finditer(data, start, stop):
                yield Match(match.start(), match.end(), self.name, self._placeholder)

    def find_long(self, joined: bytes) -> Iterator[Match]:
        """Yield where the value occurs in the long runs of a text."""
        yield from self._find(self._long, joined, 0, len(joined))

    def _find(
        self, literals: dict[bytes, bytes], data: bytes, start: int, stop: int
    ) -> Iterator[Match]:
        for literal, text in literals.items():
            at = data.find(literal, start, stop)
            while at >= 0:
                end = at + len(literal)
                yield Match(at, end, self.name, text)
                at = data.find(literal, end, stop)

    def find_encoded(
        self, data: bytes, start: int, stop: int, mask: Callable[[bytes], bytes]
    ) -> Iterator[Match]:
        """Yield where the value occurs in base64; `mask` masks the decoded text."""
        for core in self._cores:
            at = data.find(core.text, start, stop)
            while at >= 0:
                match = _in_base64(data, at, core, self.name, mask)
                yield match
                at = data.find(core.text, match.end, stop)

    def find_long_encoded(self, text: Runs, mask: Callable[[bytes], bytes]) -> Iterator[Match]:
        """Yield where the value occurs in base64 in the long runs of a text."""
        for core in self._long_cores:
            at = text.joined.find(core.text)
            while at >= 0:
                yield _in_base64(text.data, text.place(at), core, self.name, mask)
                at = text.joined.find(core.text, at + len(core.text))

    def pieces(self, data: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield where the value may occur in an escape that is not among its spellings."""
        at = data.find(self._anchor, start, stop)
        while at >= 0:
            begin, end = max(start, at - self._reach), min(stop, at + self._reach)
            if _ESCAPED.search(data, begin, end):
                yield begin, end
            at = data.find(self._anchor, end, stop)

    def beginnings(self) -> Iterator[bytes]:
        """Yield the texts of which a piece of a body may hold only the beginning."""
        yield from self._literals
        yield from self._long
        yield from self._variants
        yield from (core.text for core in (*self._cores, *self._long_cores))


def _spellings(value: str) -> Iterator[bytes]:
    """Yield a pattern for each character: plain, JSON-escaped (also twice), percent-encoded."""
    for char in value:
        raw = char.encode("utf-8", "surrogateescape")
        if _UNRESERVED.fullmatch(raw):
            yield re.escape(raw)
            continue
        units = char.encode("utf-16-be", "surrogatepass").hex()
        escape = b"".join(
            rb"\\{1,7}u" + _any_case(units[i : i + 4]) for i in range(0, len(units), 4)
        )
        percent = b"".join(b"%(?:25){0,2}" + _any_case(f"{byte:02x}") for byte in raw)
        spelled = [percent, escape]
        if char == "\\":
            spelled.append(rb"\\{1,8}")
        elif char in '"/':
            spelled.append(rb"\\{0,7}" + re.escape(raw))
        elif char in "\n\r\t":
            spelled += [re.escape(raw), rb"\\{1,7}" + repr(char)[2].encode()]
        else:
            spelled.append(re.escape(raw))
        if char == " ":
            spelled.append(rb"\+")
        yield b"(?:" + b"|".join(spelled) + b")"


def _any_case(digits: str) -> bytes:
    return b"".join(
        f"[{digit}{digit.upper()}]".encode() if digit.isalpha() else digit.encode()
        for digit in digits
    )


def _variants(value: str) -> set[bytes]:
    """Return the usual spellings of a value with characters that need escaping."""
    escaped = json.dumps(value)[1:-1]
    texts = {value, escaped, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(escaped)[1:-1]}
    texts |= {text.replace("/", "\\/") for text in texts}
    spellings = {text.encode("utf-8", "surrogateescape") for text in texts}
    raw = value.encode("utf-8", "surrogateescape")
    for percent in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        spellings |= {percent.encode(), re.sub("%..", lambda m: m[0].lower(), percent).encode()}
    return spellings


def _cores(plain: bytes, placeholder: bytes) -> Iterator[_Core]:
    for offset, skipped in enumerate(_SKIPPED):
        core, masked = (_core(offset, skipped, data) for data in (plain, placeholder))
        yield _Core(core, skipped, masked)
        yield _Core(core.translate(_TO_URLSAFE), skipped, masked.translate(_TO_URLSAFE))
        for quoted in (quote(core, safe="").encode(), core.replace(b"/", b"\\/")):
            if quoted != core:
                yield _Core(quoted, -1, masked)


def _core(offset: int, skipped: int, data: bytes) -> bytes:
    whole = 8 * (offset + len(data)) // 6
    return base64.b64encode(b"\0" * offset + data)[skipped:whole]


def _in_base64(
    data: bytes, at: int, core: _Core, name: str, mask: Callable[[bytes], bytes]
) -> Match:
    """Return a match for the base64 text from the value to its end, decoded, masked and encoded.

    The rest of the text is encoded again because the placeholder has another length, which shifts
    the groups of four. If the text cannot be decoded, only the value is masked.
    """
    end = at + len(core.text)
    start = at - core.skipped
    alone = Match(at, end, name, core.masked)
    if core.skipped < 0 or start < 0 or not _GROUP.fullmatch(data, start, at):
        return alone
    runs = [match for run in (_STANDARD, _URLSAFE) if (match := run.match(data, start))]
    run = max(runs, key=lambda match: match.end())
    pad, text = run[1], data[start : run.start(1)]
    text = text[: len(text) - (len(text) % 4 == 1)]
    decoded = base64.b64decode(text.translate(_TO_STANDARD) + b"=" * (-len(text) % 4))
    hidden = mask(decoded)
    if hidden == decoded:
        return alone
    masked = base64.b64encode(hidden)
    if run.re is _URLSAFE:
        masked = masked.translate(_TO_URLSAFE)
    if pad:
        masked = masked.replace(b"=", pad[: 3 if pad.startswith(b"%") else 1])
    elif len(text) % 4:
        masked = masked.rstrip(b"=")
    stop = run.end() if pad else start + len(text)
    return Match(start, stop, name, masked, may_grow=True)
