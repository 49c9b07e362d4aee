"""Decompress a body, within a limit on its size."""

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
    """The decompressed bytes would exceed the limit."""


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def decompress(body: bytes, encodings: str, limit: int = LIMIT) -> bytes | None:
    """Undo the codings of a `Content-Encoding` value, the last one first.

    A truncated body decompresses up to the cut. A body that is not in the named coding is returned
    unchanged, since some recorders decompress bodies but keep the header. Return None if the result
    would exceed `limit` bytes, if the coding is unknown, or if its library is not installed.
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
    # The name means zlib's format, but some servers send raw deflate.
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
            # Older releases of brotli do not have this argument: they cannot limit their output.
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
