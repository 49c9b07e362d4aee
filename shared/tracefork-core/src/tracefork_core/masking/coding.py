"""Content codings: unpack a body as it comes, to see what is in it."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from importlib import import_module

Decode = Callable[[bytes], bytes]


def decoder(coding: str) -> Decode | None:
    """Return what unpacks the pieces of a body; None for a coding that is not known here.

    What it returns raises an exception where the bytes are not of that coding.
    """
    match coding.strip().lower():
        case "gzip" | "x-gzip":
            return _Members(31)
        case "deflate":
            return _Deflate()
        case "zstd":
            if sys.version_info >= (3, 14):
                from compression import zstd
            else:
                from backports import zstd
            return zstd.ZstdDecompressor().decompress
        case "br":
            for name in ("brotli", "brotlicffi"):
                try:
                    unpack: Decode = import_module(name).Decompressor().process
                except ImportError:
                    continue
                return unpack
    return None


class _Members:
    """Unpacks gzip, which may have several members."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._unpacker = zlib.decompressobj(bits)

    def __call__(self, data: bytes) -> bytes:
        found = self._unpacker.decompress(data)
        while self._unpacker.eof and (rest := self._unpacker.unused_data):
            self._unpacker = zlib.decompressobj(self._bits)
            found += self._unpacker.decompress(rest)
        return found


class _Deflate:
    """Unpacks deflate, which some servers send without its zlib header."""

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj()
        self._seen = b""

    def __call__(self, data: bytes) -> bytes:
        try:
            found = self._unpacker.decompress(data)
        except zlib.error:
            if len(self._seen) > 2:
                raise
            self._unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            found = self._unpacker.decompress(self._seen + data)
        self._seen += data[:3]
        return found
