"""Undo the content encodings of a body, never growing past a limit."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Protocol

LIMIT = 64 * 2**20

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_MODULES = ("compression.zstd", "backports.zstd")


class _TooLargeError(Exception):
    """The plain bytes would pass the limit."""


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def decompress(body: bytes, encodings: str, limit: int = LIMIT) -> bytes | None:
    """Undo the codings of a `Content-Encoding` value, the last one first.

    A body cut short gives what it held; one that is not in the coding named is taken as
    already decoded, since some recorders keep the header and drop the coding. None when the
    result would pass `limit` bytes, or the coding is unknown or its library not installed.
    """
    names = [name.strip().lower() for name in encodings.split(",")]
    plain: bytes | None = body
    for name in reversed(names):
        if plain is None or name in ("", "identity"):
            continue
        decoder = _DECODERS.get(name)
        try:
            plain = decoder(plain, limit) if decoder else None
        except _TooLargeError:
            return None
    return plain if plain is not None and len(plain) <= limit else None


def _gzip(body: bytes, limit: int) -> bytes:
    if not body.startswith(_GZIP_MAGIC):
        return body
    return _members(body, lambda: zlib.decompressobj(31), zlib.error, limit)


def _deflate(body: bytes, limit: int) -> bytes:
    if body[:1] in (b"{", b"["):
        return body
    # The name means zlib's format, but raw deflate is what some servers send.
    wrapped = _members(body, lambda: zlib.decompressobj(15), zlib.error, limit)
    return wrapped or _members(body, lambda: zlib.decompressobj(-15), zlib.error, limit) or body


def _zstd(body: bytes, limit: int) -> bytes | None:
    if not body.startswith(_ZSTD_MAGIC):
        return body
    for name in _ZSTD_MODULES:
        try:
            zstd = importlib.import_module(name)
        except ImportError:
            continue
        return _members(body, zstd.ZstdDecompressor, zstd.ZstdError, limit)
    return None


def _brotli(body: bytes, limit: int) -> bytes | None:
    try:
        brotli = importlib.import_module("brotli")
    except ImportError:
        return None
    inflater = brotli.Decompressor()
    plain = bytearray()
    data = body
    try:
        while not inflater.is_finished():
            # Older releases cannot bound their output and refuse the argument.
            piece = inflater.process(data, output_buffer_limit=limit - len(plain) + 1)
            plain += piece
            if len(plain) > limit:
                raise _TooLargeError
            if not piece:
                break
            data = b""
    except brotli.error:
        return bytes(plain) or body
    except TypeError:
        return None
    return bytes(plain)


def _members(
    body: bytes, start: Callable[[], _Inflater], failure: type[Exception], limit: int
) -> bytes:
    plain = bytearray()
    while body:
        inflater = start()
        try:
            plain += inflater.decompress(body, limit - len(plain) + 1)
        except failure:
            break
        if len(plain) > limit:
            raise _TooLargeError
        body = inflater.unused_data if inflater.eof else b""
    return bytes(plain)


_DECODERS: dict[str, Callable[[bytes, int], bytes | None]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
    "br": _brotli,
}
