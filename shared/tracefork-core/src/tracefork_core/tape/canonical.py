"""Canonical JSON and content hashes: one spelling for one value.

Canonical JSON is UTF-8, keys sorted by code point, no white space, integers in decimal.
"""

from __future__ import annotations

import hashlib

import msgspec

_encode = msgspec.json.Encoder(order="sorted").encode


def canonical(value: object) -> bytes:
    """Encode a JSON-able value (or msgspec Struct) canonically."""
    return _encode(value)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
