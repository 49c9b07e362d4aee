"""Canonical JSON, content hashes, and the digest of a run.

Canonical JSON has one spelling for one value: UTF-8, keys sorted by code point, no white space,
integers in decimal.

The digest is a hash chain over the payloads of the exchanges, in the order asked:

    h₀ = sha256("tracefork tape 1"),  hₖ = sha256(hₖ₋₁ ‖ payloadₖ)

A payload is canonical JSON that names bodies by their sha256. So the digest covers every byte that
crossed the boundary, and nothing else: no clock times, hosts, lanes, steps or chunk boundaries. Two
recordings of the same bytes have the same digest. It proves that nothing changed since it was
written down; it does not prove who wrote it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

SEED = b"tracefork tape 1"

_encode = msgspec.json.Encoder(order="sorted").encode


def chain(payloads: Iterable[bytes]) -> str:
    """Return the digest of canonical payloads, 64 hexadecimal digits."""
    link = hashlib.sha256(SEED).digest()
    for payload in payloads:
        link = hashlib.sha256(link + payload).digest()
    return link.hex()


def canonical(value: object) -> bytes:
    """Encode a JSON-able value (or msgspec Struct) canonically."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(spelled(value))


def spelled(value: object) -> object:
    """Return a JSON-able value (or msgspec Struct) in which UTF-8 can encode every text."""
    return _spelled(msgspec.to_builtins(value, builtin_types=(bytes,)))


def spelled_text(text: str) -> str:
    r"""Return a text that UTF-8 can encode.

    Names of files and values of variables may hold bytes that are not UTF-8, as lone surrogates;
    each becomes an escape like `\udcff`.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def _spelled(value: object) -> object:
    match value:
        case str():
            return spelled_text(value)
        case dict():
            return {_spelled(key): _spelled(item) for key, item in value.items()}
        case list() | tuple():
            return [_spelled(item) for item in value]
    return value


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
