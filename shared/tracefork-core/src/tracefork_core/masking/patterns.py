"""Find tokens that are known by their look, such as API keys, in whatever text they appear.

Speed decides the form. A *gate* is a regex that begins with one rare letter: `bytes.find` skips
text without that letter, and the full patterns run only if the gate matches. One regex for all
gates took several times as long, on short texts too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

VERSION = "known-tokens-1"
"""The name of this set of patterns on a tape. Change it when you change or add a pattern."""

LONGEST = 16 * 1024
"""The length in bytes that no token below exceeds."""

_NEW = rb"(?<![A-Za-z0-9])"
_BASE64URL = rb"[A-Za-z0-9_-]"
_GATES: tuple[tuple[bytes, tuple[tuple[str, bytes], ...]], ...] = (
    (
        rb"-(?<=[abeoprski]-)(?<=sk-|pi-|x[abeoprs]-)",
        (
            ("anthropic_key", _NEW + rb"sk-ant-[A-Za-z0-9_-]{20,512}"),
            ("openai_key", _NEW + rb"sk-(?:proj|svcacct|admin|or|lf)-[A-Za-z0-9_-]{20,512}"),
            ("openai_key", _NEW + rb"sk-(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{20,512}"),
            ("nvidia_key", _NEW + rb"nvapi-[A-Za-z0-9_-]{20,512}"),
            ("slack_token", _NEW + rb"xox[abeoprs]-[A-Za-z0-9-]{10,512}"),
        ),
    ),
    (
        rb"_(?<=[pousrtfk8]_)(?<=h[pousr]_|at_|hf_|sk_|r8_)",
        (
            ("github_token", _NEW + rb"gh[pousr]_[A-Za-z0-9]{30,512}"),
            ("github_token", _NEW + rb"github_pat_[A-Za-z0-9_]{30,512}"),
            ("huggingface_token", _NEW + rb"hf_[A-Za-z0-9]{30,512}"),
            ("groq_key", _NEW + rb"gsk_[A-Za-z0-9]{30,512}"),
            ("replicate_token", _NEW + rb"r8_[A-Za-z0-9]{30,512}"),
        ),
    ),
    (
        rb"A(?:KIA|SIA|Iza)",
        (
            ("google_key", _NEW + rb"AIza[A-Za-z0-9_-]{35}"),
            ("aws_key_id", _NEW + rb"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ),
    ),
    (
        rb"J(?<=eyJ)",
        (
            (
                "jwt",
                _NEW + rb"eyJ(?:%b{8,4096}\.){2}%b{16,4096}" % (_BASE64URL, _BASE64URL),
            ),
        ),
    ),
    (
        rb"B(?=earer )",
        (
            (
                "bearer_token",
                rb"(?<=Bearer )(?!tracefork-secret-)(?=[A-Za-z._~+/=-]{0,64}\d)[\w.~+/=-]{20,4096}",
            ),
        ),
    ),
    (
        rb"K(?<=PRIVATE K)EY-----",
        (
            (
                "private_key",
                rb"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[^-]{16,14000}(?:-----END [A-Z ]+-----)?",
            ),
        ),
    ),
)
_LONG = 16 * 1024
"""From this size in bytes, searching for the letter alone pays: it is ten times as fast."""
_RARE = 500
"""It does not pay if the letter occurs more often than every so many bytes."""

_compiled = tuple(
    (gate[:1], re.compile(gate), tuple((name, re.compile(pattern)) for name, pattern in patterns))
    for gate, patterns in _GATES
)

# Ends of a piece of a body that may be the beginning of one of these tokens.
_WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~+/=-"
_begun_word = re.compile(
    rb"(?<![A-Za-z0-9])(?:sk-|nvapi-|xox[abeoprs]-|gh[pousr]_|github_pat_|hf_|gsk_|r8_|AIza|A[KS]IA)"
    rb"[A-Za-z0-9_-]*\Z|(?<![A-Za-z0-9])eyJ[A-Za-z0-9_.-]*\Z"
)
_begun_key = re.compile(rb"-----BEGIN [A-Z ]*(?:PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*|-*))?-*\Z")
_LONGEST_PREFIX = 32
_BEARER = b"Bearer "
_BEGIN = b"-----BEGIN "


def tokens(data: bytes, start: int, stop: int) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and name of each known token in `data[start:stop]`."""
    for letter, gate, patterns in _compiled:
        at = data.find(letter, start, stop)
        if at >= 0 and _opens(letter, gate, data, at, stop):
            for name, pattern in patterns:
                for match in pattern.finditer(data, start, stop):
                    yield match.start(), match.end(), name


def unfinished(data: bytes, start: int) -> int:
    """Return where a token begins that may continue after `data`; `len(data)` if none does."""
    end = len(data)
    start = max(0, start - _LONGEST_PREFIX, end - LONGEST)
    key = data.rfind(_BEGIN, start)
    if key >= 0 and _begun_key.match(data, key):
        return key
    word = max(start, len(data.rstrip(_WORD)))
    if data.endswith(_BEARER, max(0, word - len(_BEARER)), word):
        return word
    match = _begun_word.search(data, word) if word < end else None
    return match.start() if match else end


def _opens(letter: bytes, gate: re.Pattern[bytes], data: bytes, start: int, stop: int) -> bool:
    """Return whether a gate matches anywhere from the first occurrence of its letter on."""
    at, tries = start, 0
    while stop - at >= _LONG and tries * _RARE <= at - start + 8 * _RARE:
        if gate.match(data, at, stop):
            return True
        at, tries = data.find(letter, at + 1, stop), tries + 1
        if at < 0:
            return False
    return gate.search(data, at, stop) is not None
