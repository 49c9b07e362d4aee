"""Blobs: bodies stored once, addressed by the sha256 of their plain bytes, checked on reading."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from contextlib import suppress

from tracefork_core.errors import TapeError
from tracefork_core.tape.schema import LARGEST

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_RAW, _ZSTD = 0, 1
_LEVEL = 1
_WORTH_PACKING = 128
_AHEAD = 64
_SMALL = 16 * 1024
EMPTY = hashlib.sha256(b"").hexdigest()


class Blobs:
    """The blob table of one open tape."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._stored: set[str] = set()
        self._compressor = zstd.ZstdCompressor(level=_LEVEL)
        self._ahead: dict[bytes, list[object]] = {}

    def put(self, data: bytes, sha: str | None = None) -> str:
        """Store `data` inside the caller's transaction and return its address.

        Raises:
            TapeError: there is more of it than a tape takes.
        """
        sha = sha or hashlib.sha256(data).hexdigest()
        if not data or sha in self._stored:
            return sha
        if len(data) > LARGEST:
            raise TapeError(
                f"tracefork: a body of {len(data)} bytes does not go onto a tape; "
                f"the largest that does has {LARGEST}."
            )
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

    def forget(self) -> None:
        """Believe nothing to be stored: the caller's transaction was rolled back."""
        self._stored.clear()

    def get(self, sha: str) -> bytes:
        """Return the plain bytes at an address.

        Raises:
            TapeError: the blob is missing, or its bytes are not what its address says.
        """
        if sha == EMPTY:
            return b""
        try:
            row = self._row(bytes.fromhex(sha))
        except (sqlite3.Error, ValueError) as error:
            raise TapeError(f"tracefork: cannot read blob {sha[:12]}: {error}.") from error
        if row is None:
            raise TapeError(f"tracefork: blob {sha[:12]} is missing from the tape.")
        size, codec, stored = row
        if not isinstance(size, int) or not isinstance(stored, bytes) or not 0 <= size <= LARGEST:
            raise TapeError(f"tracefork: blob {sha[:12]} is larger than a tape takes, or no blob.")
        data = stored if codec == _RAW else _unpack(stored, size, sha)
        if hashlib.sha256(data).hexdigest() != sha:
            raise TapeError(f"tracefork: blob {sha[:12]} was changed since it was recorded.")
        return data

    def _row(self, sha: bytes) -> list[object] | None:
        row = self._ahead.pop(sha, None)
        if row is None:
            found = self._db.execute(
                "SELECT id, size, codec, data FROM blobs WHERE sha = ?", (sha,)
            ).fetchone()
            if found is not None:
                place, *row = found
                self._ahead = self._after(place)
        return row

    def _after(self, place: int) -> dict[bytes, list[object]]:
        """Read the small blobs written after one: a replay asks for them next, in that order."""
        with suppress(sqlite3.Error):  # Damage there is nobody's concern yet.
            rows = self._db.execute(
                "SELECT sha, size, codec, data FROM blobs "
                "WHERE id > :place AND id <= :place + :ahead AND length(data) <= :small",
                {"place": place, "ahead": _AHEAD, "small": _SMALL},
            )
            return {sha: row for sha, *row in rows}
        return {}


def _unpack(stored: bytes, size: int, sha: str) -> bytes:
    """Decompress `size` bytes and not one more: a frame that holds more is a lie, not a body."""
    decompressor = zstd.ZstdDecompressor()
    try:
        data = decompressor.decompress(stored, max_length=size + 1)
    except (zstd.ZstdError, EOFError, OverflowError) as error:
        raise TapeError(f"tracefork: blob {sha[:12]} does not decompress: {error}.") from error
    if len(data) != size or not decompressor.eof:
        raise TapeError(f"tracefork: blob {sha[:12]} does not have the size it declares.")
    return data
