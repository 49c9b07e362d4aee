"""Find tokens that are known by their look, such as API keys, in whatever text they appear.

Speed decides the form. A *gate* is a regex that begins with one rare letter: `bytes.find` skips
text without that letter, and the full patterns run only if the gate matches. One regex for all
gates took several times as long, on short texts too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracefork_core.masking.escapes import begins_word, may_begin_word

VERSION = "known-tokens-2"
"""The name of this set of patterns on a tape. Change it when you change or add a pattern."""

LONGEST = 16 * 1024
"""The length in bytes that no token below exceeds."""

_BASE64URL = rb"[A-Za-z0-9_-]"
_SPACE = rb"(?: |\+|%20)"
# A gate, the beginnings of which it is the end, and what can begin there.
_GATES: tuple[tuple[bytes, bytes, tuple[tuple[str, bytes], ...]], ...] = (
    (
        rb"-(?<=[abeoprski]-)(?:(?<=sk-|pi-|x[abeoprs]-)|(?<=xapp-))",
        rb"(?:sk|nvapi|xox[abeoprs]|xapp)-\Z",
        (
            ("anthropic_key", rb"sk-ant-[A-Za-z0-9_-]{20,512}"),
            ("openai_key", rb"sk-(?:proj|svcacct|admin|or|lf)-[A-Za-z0-9_-]{20,512}"),
            ("openai_key", rb"sk-(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{20,512}"),
            ("nvidia_key", rb"nvapi-[A-Za-z0-9_-]{20,512}"),
            ("slack_token", rb"xox[abeoprs]-[A-Za-z0-9-]{10,512}"),
            ("slack_token", rb"xapp-[0-9]-[A-Za-z0-9-]{10,512}"),
        ),
    ),
    (
        rb"_(?<=[pousrtfk8]_)(?<=h[pousr]_|at_|hf_|sk_|r8_)",
        rb"(?:gh[pousr]|github_pat|hf|gsk|r8)_\Z",
        (
            ("github_token", rb"gh[pousr]_[A-Za-z0-9]{30,512}"),
            ("github_token", rb"github_pat_[A-Za-z0-9_]{30,512}"),
            ("huggingface_token", rb"hf_[A-Za-z0-9]{30,512}"),
            ("groq_key", rb"gsk_[A-Za-z0-9]{30,512}"),
            ("replicate_token", rb"r8_[A-Za-z0-9]{30,512}"),
        ),
    ),
    (
        rb"A(?=KIA|SIA|Iza)",
        rb"A\Z",
        (
            ("google_key", rb"AIza[A-Za-z0-9_-]{35}"),
            ("aws_key_id", rb"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ),
    ),
    (
        rb"J(?<=eyJ)",
        rb"eyJ\Z",
        (("jwt", rb"eyJ(?:%b{8,4096}+\.){2}%b{16,4096}" % (_BASE64URL, _BASE64URL)),),
    ),
    (
        rb"B(?=earer)",
        rb"B\Z",
        (
            (
                "bearer_token",
                rb"Bearer%b((?!tracefork-secret-)(?=[A-Za-z._~+/=-]{0,64}\d)[\w.~+/=-]{20,4096})"
                % _SPACE,
            ),
        ),
    ),
    (
        rb"K(?=ey=)(?<=AccountK|dAccessK)",
        rb"(?:Account|SharedAccess)K\Z",
        (("azure_key", rb"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,128}={0,2})"),),
    ),
)
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN%b[A-Z0-9 +%%]{0,48}PRIVATE%bKEY-----[^-]{16,14000}(?:-----END[A-Z0-9 +%%]+-----)?"
    % (_SPACE, _SPACE)
)
_SCHEME_END = re.compile(rb":(?:\\{0,7}/){2}\Z")
_URL_PASSWORD = re.compile(
    rb"[^\s/?#\"'<>@:\\]{0,128}:(?!tracefork-secret-)(?!\$|[A-Za-z_-]+@|[\d.,:+-]+@)"
    rb"([A-Za-z0-9._~!$&*+,;=%-]{6,256})@(?!sha\d)"
)
"""A password in a URL that is not a word or a number: examples have those in all texts."""
_compiled = tuple(
    (
        gate[:1],
        re.compile(gate),
        re.compile(begin),
        tuple((name, re.compile(pattern)) for name, pattern in patterns),
    )
    for gate, begin, patterns in _GATES
)
_LONGEST_BEGINNING = 96
_LONGEST_URL = 512

# Ends of a piece of a body that may be the beginning of one of these tokens.
_WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~+/=-"
_begun_word = re.compile(
    rb"(?<![A-Za-z0-9])(?:sk-|nvapi-|xox[abeoprs]-|xapp-|gh[pousr]_|github_pat_|hf_|gsk_|r8_|AIza|A[KS]IA)"
    rb"[A-Za-z0-9_-]*\Z|(?<![A-Za-z0-9])eyJ[A-Za-z0-9_.-]*\Z"
)
_begun_key = re.compile(rb"-----BEGIN [A-Z ]*(?:PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*|-*))?-*\Z")
_LONGEST_PREFIX = 32
_BEARER = b"Bearer "
_BEGIN = b"-----BEGIN"
PRIVATE_KEY_MARK = b"KEY-----"


def tokens(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and name of each known token in `data` that is an unbroken run of text."""
    for letter, gate, begins, patterns in _compiled:
        if letter not in data:
            continue
        after = 0
        for opened in gate.finditer(data):
            at = opened.start()
            begin = begins.search(data, max(after, at - _LONGEST_BEGINNING), at + 1)
            if begin is None or not may_begin_word(data, begin.start()):
                continue
            for name, pattern in patterns:
                match = pattern.match(data, begin.start())
                if match is not None and begins_word(data, begin.start()):
                    group = pattern.groups
                    yield match.start(group), match.end(group), name
                    after = match.end()
                    break


def private_keys(data: bytes, start: int, stop: int) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and name of each private key in `data[start:stop]`."""
    at = data.find(PRIVATE_KEY_MARK, start, stop)
    while at >= 0:
        begin = data.rfind(_BEGIN, max(start, at - _LONGEST_BEGINNING), at)
        match = _PRIVATE_KEY.match(data, begin, stop) if begin >= 0 else None
        if match is not None:
            yield match.start(), match.end(), "private_key"
        at = data.find(PRIVATE_KEY_MARK, at + 1, stop)


def url_passwords(data: bytes, start: int, stop: int) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and name of each password in a URL in `data[start:stop]`."""
    at = data.find(b"@", start, stop)
    while at >= 0:
        slash = data.rfind(b"/", max(start, at - _LONGEST_URL), at)
        if slash > start and _SCHEME_END.search(data, max(start, slash - 17), slash + 1):
            match = _URL_PASSWORD.match(data, slash + 1, min(stop, at + 5))
            if match is not None and match.end() == at + 1:
                yield match.start(1), match.end(1), "url_password"
        at = data.find(b"@", at + 1, stop)


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
