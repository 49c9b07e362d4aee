"""The signature of a failure: the same for the same failure, whatever the run.

Times, ids, addresses, temporary folders, line numbers and durations are left out. The signature of
pytest's output is that of its failed tests and their exceptions: the order of the tests and the
values in a message do not matter.
"""

from __future__ import annotations

import re
from hashlib import sha256

_LENGTH = 16
_LONGEST = 100_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?: - (.*))?$", re.MULTILINE)
_EXCEPTION = re.compile(r"^(?:E\s+)?([A-Za-z_][\w.]*(?:Error|Exception|Exit|Warning|Interrupt))\b")
_INCIDENTAL = (
    re.compile(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    re.compile(r"0x[0-9a-fA-F]{6,16}"),
    re.compile(r"(?:/tmp|/var/folders|/private/tmp|/dev/shm)[^\s'\":,)]*"),
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"),
    re.compile(r"\bin \d+(?:\.\d+)?m?s\b|\b\d+(?:\.\d+)? ?(?:ms|seconds?|secs?|s)\b"),
    re.compile(r"\bline \d+\b|(?<=\.py):\d+\b"),
    re.compile(r"\b[0-9a-f]{12,64}\b"),
)


def signature(text: str) -> str:
    """Return the signature of a failure's text."""
    return sha256(normalised(text).encode("utf-8", "backslashreplace")).hexdigest()[:_LENGTH]


def normalised(text: str) -> str:
    """Return what two runs of the same failure share."""
    plain = _ANSI.sub("", text[-_LONGEST:]).replace("\r\n", "\n")
    tests = sorted({f"{test} {_kind(why)}".rstrip() for test, why in _FAILED_TEST.findall(plain)})
    if tests:
        return "\n".join(tests)
    lines = plain.strip().splitlines()
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        lines = [line for line in lines if line[:1] not in ("", " ")][-1:]
    text = "\n".join(lines)
    for pattern in _INCIDENTAL:
        text = pattern.sub("…", text)
    return " ".join(text.split())


def _kind(why: str) -> str:
    """Return the class of the exception in pytest's words about a failed test."""
    match = _EXCEPTION.match(why)
    if match:
        return match[1]
    return "AssertionError" if why.startswith("assert ") else ""
