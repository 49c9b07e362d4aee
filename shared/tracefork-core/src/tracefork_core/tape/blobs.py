"""Blobs: bodies stored once, addressed by the sha256 of their plain bytes, checked on reading."""

from __future__ import annotations

import hashlib
import sqlite3
import sys

from tracefork_core.errors import TapeError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_RAW, _ZSTD = 0, 1
_LEVEL = 3
_WORTH_PACKING = 128
EMPTY = hashlib.sha256(b"").hexdigest()


class Blobs:
    """The blob table of one open tape."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._stored: set[str] = set()
        self._compressor = zstd.ZstdCompressor(level=_LEVEL)

    def put(self, data: bytes, sha: str | None = None) -> str:
        """Store `data` inside the caller's transaction and return its address."""
        sha = sha or hashlib.sha256(data).hexdigest()
        if not data or sha in self._stored:
            return sha
        codec, stored = _RAW, data
        if len(data) >= _WORTH_PACKING:
            packed = self._compressor.compress(data, self._compressor.FLUSH_FRAME)
            if len(packed) < len(data):
                codec, stored = _ZSTD, packed
        self._db.execute(
            "INSERT OR IGNORE INTO blobs (sha, size, codec, base, data) VALUES (?, ?, ?, NULL, ?)",
            (bytes.fromhex(sha), len(data), codec, stored),
        )
        self._stored.add(sha)
        return sha

    def get(self, sha: str) -> bytes:
        """Return the plain bytes at an address.

        Raises:
            TapeError: the blob is missing, or its bytes are not what its address says.
        """
        if sha == EMPTY:
            return b""
        try:
            row = self._db.execute(
                "SELECT size, codec, data FROM blobs WHERE sha = ?", (bytes.fromhex(sha),)
            ).fetchone()
        except (sqlite3.Error, ValueError) as error:
            raise TapeError(f"tracefork: cannot read blob {sha[:12]}: {error}.") from error
        if row is None:
            raise TapeError(f"tracefork: blob {sha[:12]} is missing from the tape.")
        size, codec, stored = row
        data = stored if codec == _RAW else _unpack(stored, size, sha)
        if hashlib.sha256(data).hexdigest() != sha:
            raise TapeError(f"tracefork: blob {sha[:12]} was changed since it was recorded.")
        return data


def _unpack(stored: bytes, size: int, sha: str) -> bytes:
    """Decompress at most `size` bytes: a frame that holds more is a lie, not a body."""
    decompressor = zstd.ZstdDecompressor()
    try:
        data = decompressor.decompress(stored, max_length=size + 1)
    except (zstd.ZstdError, EOFError, OverflowError) as error:
        raise TapeError(f"tracefork: blob {sha[:12]} does not decompress: {error}.") from error
    if len(data) != size or not decompressor.eof:
        raise TapeError(f"tracefork: blob {sha[:12]} does not have the size it declares.")
    return data
