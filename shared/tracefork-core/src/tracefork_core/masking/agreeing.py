"""Make the headers of a message agree with its masked body: its length, and digests of it.

A digest of the unmasked body would contradict the tape. It would also tell whether a guess at a
short secret is right.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

_DIGEST = re.compile(r"digest|md5|sha-?256|checksum|^etag$")
_ALGORITHMS = ("md5", "sha1", "sha256", "sha512")


def agreeing(
    headers: Sequence[tuple[str, str | None]], before: bytes, after: bytes, *, length: bool = True
) -> list[tuple[str, str | None]]:
    """Return headers in which the length and the digests of a body are those of another.

    Args:
        headers: names and values; a value may be missing.
        before: the body as it was.
        after: the masked body.
        length: whether to change the length, too.
    """
    sizes = (str(len(before)), str(len(after)))

    def changed(name: str, value: str | None) -> str | None:
        if value is not None and _DIGEST.search(name):
            return _replaced(value, before, after)
        is_length = length and name == "content-length" and value == sizes[0]
        return sizes[1] if is_length else value

    return [(name, changed(name.lower(), value)) for name, value in headers]


def _replaced(value: str, before: bytes, after: bytes) -> str:
    for algorithm in _ALGORITHMS:
        old, new = (hashlib.new(algorithm, data).digest() for data in (before, after))
        value = value.replace(base64.b64encode(old).decode(), base64.b64encode(new).decode())
        value = value.replace(old.hex(), new.hex())
    return value
