"""Make the frames of an AWS event stream agree with their masked payloads.

Each frame has its length and its checksums in it. A placeholder has another length than its secret,
so a masked frame would be no frame, and a client would fail at it in a replay.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator, Sequence
from struct import Struct

from tracefork_core.masking.redactor import replace
from tracefork_core.masking.spellings import Match

_PRELUDE = Struct(">III")
_CHECKSUM = 4


def reframed(body: bytes, matches: Sequence[Match]) -> list[Match]:
    """Return the matches, with what replaces the lengths and checksums of their frames.

    A body that does not begin with a frame gets its matches back. So does a frame that is cut off,
    whose checksum was wrong already, or that has a secret in its headers.
    """
    adapted = list(matches)
    for start, end, headers in _frames(body):
        first, last = start + _PRELUDE.size, end - _CHECKSUM
        inside = [match for match in matches if start <= match.start < end]
        is_in_payload = all(first + headers <= one.start and one.end <= last for one in inside)
        if not inside or not is_in_payload or not _is_sound(body, start, end):
            continue
        masked = replace(body[first:last], [match.seen_from(first) for match in inside])
        lengths = _PRELUDE.size + len(masked) + _CHECKSUM, headers
        prelude = _PRELUDE.pack(*lengths, crc32(_PRELUDE.pack(*lengths, 0)[:8]))
        checksum = crc32(prelude + masked).to_bytes(_CHECKSUM, "big")
        name = inside[0].name
        adapted.append(Match(start, first, name, prelude))
        adapted.append(Match(last, end, name, checksum))
    return sorted(adapted)


def _frames(body: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield where each frame begins and ends, and the length of its headers."""
    start = 0
    while start + _PRELUDE.size <= len(body):
        length, headers, checksum = _PRELUDE.unpack_from(body, start)
        is_frame = crc32(body[start : start + 8]) == checksum
        if not is_frame or length < _PRELUDE.size + headers + _CHECKSUM:
            return
        if start + length > len(body):
            return
        yield start, start + length, headers
        start += length


def _is_sound(body: bytes, start: int, end: int) -> bool:
    checksum = body[end - _CHECKSUM : end]
    return crc32(body[start : end - _CHECKSUM]).to_bytes(_CHECKSUM, "big") == checksum
