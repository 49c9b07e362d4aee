"""Canonical JSON and content hashes: one spelling for one value.

Canonical JSON is UTF-8, keys sorted by code point, no white space, integers in decimal.
"""

from __future__ import annotations

import hashlib

import msgspec

_encode = msgspec.json.Encoder(order="sorted").encode


def canonical(value: object) -> bytes:
    """Encode a JSON-able value (or msgspec Struct) canonically."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(spelled(value))


def spelled(value: object) -> object:
    """Return a JSON-able value (or msgspec Struct) in which every text can be encoded."""
    return _spelled(msgspec.to_builtins(value, builtin_types=(bytes,)))


def spelled_text(text: str) -> str:
    r"""Return a text that can be encoded.

    Names of files and values of variables need not be text: what of them is none becomes `\udcff`.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def _spelled(value: object) -> object:
    match value:
        case str():
            return spelled_text(value)
        case dict():
            return {_spelled(key): _spelled(one) for key, one in value.items()}
        case list() | tuple():
            return [_spelled(one) for one in value]
    return value


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
