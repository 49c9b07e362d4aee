"""zstd frames: written piece by piece while recording, and unpacked up to a limit."""

from __future__ import annotations

import sys

from tracefork_core.errors import TapeError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_WINDOW_LOG = 20  # 1 MiB holds a segment and what its last piece adds.
_QUICK, _TIGHT = 1, 3
_SMALL_TABLE_LOG = 12
"""A hash table of 16 KB instead of 64: each wait for the disk evicts it from the caches."""
RATIO = 1000
"""A frame may unpack to its own size times this, plus an allowance."""


class Packer:
    """One growing frame. The pieces so far, joined, unpack to everything added so far."""

    def __init__(self) -> None:
        options = _options(_QUICK) | {zstd.CompressionParameter.hash_log: _SMALL_TABLE_LOG}
        self._compressor = zstd.ZstdCompressor(options=options)

    def add(self, data: bytes) -> bytes:
        """Return the next piece of the frame, flushed: it contains all of `data`."""
        return self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_BLOCK) if data else b""


def pack(data: bytes) -> bytes:
    """Return `data` as one whole frame, smaller than in pieces; b"" stays b""."""
    return zstd.compress(data, options=_options(_TIGHT)) if data else b""


def unpack(frame: bytes, allowance: int, ratio: int = RATIO) -> bytes:
    """Unpack a frame, or the first pieces of one.

    Raises:
        TapeError: it is not a frame, or unpacks to more than `allowance` plus `ratio` times its
            size.
    """
    if not frame:
        return b""
    limit = allowance + ratio * len(frame)
    decompressor = zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    )
    try:
        data = decompressor.decompress(frame, max_length=limit + 1)
    except (zstd.ZstdError, EOFError, OverflowError) as error:
        raise TapeError(f"tracefork: corrupt data cannot be decompressed: {error}.") from error
    if len(data) > limit:
        raise TapeError(
            f"tracefork: corrupt data: {len(frame)} bytes decompress to more than {limit}, which "
            "no recorder writes."
        )
    if decompressor.unused_data:
        raise TapeError("tracefork: corrupt data: bytes follow the end of a zstd frame.")
    return data


def _options(level: int) -> dict[int, int]:
    return {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.window_log: _WINDOW_LOG,
        zstd.CompressionParameter.checksum_flag: 1,
    }
