r"""The forms in which one secret value can stand in a text, and what takes its place in each.

The placeholder has only letters, digits, `-` and `_`. So the text that an agent makes of a
placeholder (by JSON, percent-encoding, base64 or hex) is the text that stands here for what it
made of the value, and what is masked replays where the value is another one.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from tracefork_core.masking.names import SHORTEST

_UNRESERVED = re.compile(rb"[A-Za-z0-9._~-]+")
_STANDARD = re.compile(rb"[A-Za-z0-9+/]*((?:=|%3[Dd]){0,2})")
_URLSAFE = re.compile(rb"[A-Za-z0-9_-]*((?:=|%3[Dd]){0,2})")
_GROUP = re.compile(rb"[A-Za-z0-9+/_-]*")
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_TO_URLSAFE = bytes.maketrans(b"+/", b"-_")
_SKIPPED = (0, 2, 3)
"""Characters of a group of four before the first that belongs to bytes from offset 0, 1, 2 on."""


class Match(NamedTuple):
    """Where a secret stands in some bytes, its name, and what takes its place.

    `may_grow` is set where the bytes that follow can make the match longer.
    """

    start: int
    end: int
    name: str
    text: bytes
    may_grow: bool = False

    def seen_from(self, place: int) -> Match:
        """Return the match as it lies in what begins at `place`; what is before that is gone."""
        start = max(0, self.start - place)
        return Match(start, self.end - place, self.name, self.text, self.may_grow)


class _Core(NamedTuple):
    """What of the base64 text of a value does not depend on what stands around it."""

    text: bytes
    skipped: int
    masked: bytes


class Spellings:
    """The forms of one value. `placeholder` stands for the value in each of them."""

    def __init__(self, name: str, value: str, placeholder: bytes) -> None:
        self.name = name
        plain = value.encode("utf-8", "surrogateescape")
        self._literals: dict[bytes, bytes] = {}
        self._cores: list[_Core] = []
        self._spelled: re.Pattern[bytes] | None = None
        self._variants: set[bytes] = set()
        self._placeholder = placeholder
        if _UNRESERVED.fullmatch(plain):
            self._literals[plain] = placeholder
        else:
            self._spelled = re.compile(b"".join(_spellings(value)))
            # What every spelling leaves as it is, where there is such a piece.
            self._anchor = max(_UNRESERVED.findall(plain), key=len, default=b"")
            self._variants = _variants(value)
        if len(plain) >= SHORTEST:
            self._literals[plain.hex().encode()] = placeholder.hex().encode()
            self._literals[plain.hex().upper().encode()] = placeholder.hex().upper().encode()
            self._cores = list(dict.fromkeys(_cores(plain, placeholder)))

    def find(self, data: bytes, start: int, stop: int) -> Iterator[Match]:
        """Yield where the value stands as it is, escaped, percent-encoded or in hex."""
        for literal, text in self._literals.items():
            at = data.find(literal, start, stop)
            while at >= 0:
                end = at + len(literal)
                yield Match(at, end, self.name, text)
                at = data.find(literal, end, stop)
        if self._spelled is not None and (
            not self._anchor or data.find(self._anchor, start, stop) >= 0
        ):
            for found in self._spelled.finditer(data, start, stop):
                yield Match(found.start(), found.end(), self.name, self._placeholder)

    def find_encoded(
        self, data: bytes, start: int, stop: int, mask: Callable[[bytes], bytes]
    ) -> Iterator[Match]:
        """Yield where the value stands in base64; `mask` masks what that base64 decodes to."""
        for core in self._cores:
            at = data.find(core.text, start, stop)
            while at >= 0:
                found = _in_base64(data, at, core, self.name, mask)
                yield found
                at = data.find(core.text, found.end, stop)

    def beginnings(self) -> Iterator[bytes]:
        """Yield the texts that a part of a body must not end in the middle of."""
        yield from self._literals
        yield from self._variants
        yield from (core.text for core in self._cores)


def _spellings(value: str) -> Iterator[bytes]:
    """Yield a pattern for each character: as it is, escaped in JSON (also twice), per cent."""
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
    """Return the usual spellings of a value that is spelled in several ways."""
    escaped = json.dumps(value)[1:-1]
    texts = {value, escaped, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(escaped)[1:-1]}
    texts |= {text.replace("/", "\\/") for text in texts}
    found = {text.encode("utf-8", "surrogateescape") for text in texts}
    raw = value.encode("utf-8", "surrogateescape")
    for percent in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        found |= {percent.encode(), re.sub("%..", lambda m: m[0].lower(), percent).encode()}
    return found


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
    """Return the base64 text from the value on, with the value masked in what it decodes to.

    What follows the value is encoded anew, because its place in the groups may be another one. Of
    a text that is no whole base64 the value alone is masked.
    """
    end = at + len(core.text)
    start = at - core.skipped
    alone = Match(at, end, name, core.masked)
    if core.skipped < 0 or start < 0 or not _GROUP.fullmatch(data, start, at):
        return alone
    runs = [found for run in (_STANDARD, _URLSAFE) if (found := run.match(data, start))]
    run = max(runs, key=lambda found: found.end())
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
