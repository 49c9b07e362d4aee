"""zstd frames: written piece by piece while recording, and never unpacked beyond a limit."""

from __future__ import annotations

import sys

from tracefork_core.errors import TapeError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_WINDOW_LOG = 20  # 1 MiB: a segment and what its last piece adds.
_QUICK, _TIGHT = 1, 3
_SMALL_TABLE_LOG = 12
"""Of 16 KB and not of 64: after each wait for the disk, little of a table is in a cache."""
RATIO = 1000
"""What a frame unpacks to is at most its own size times this, and an allowance."""


class Packer:
    """One frame that grows. All pieces so far, joined, unpack to everything added so far."""

    def __init__(self) -> None:
        options = _options(_QUICK) | {zstd.CompressionParameter.hash_log: _SMALL_TABLE_LOG}
        self._compressor = zstd.ZstdCompressor(options=options)

    def add(self, data: bytes) -> bytes:
        """Return the next piece of the frame; it holds all of `data`."""
        return self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_BLOCK) if data else b""


def pack(data: bytes) -> bytes:
    """Return `data` as one whole frame, smaller than its pieces were; nothing stays nothing."""
    return zstd.compress(data, options=_options(_TIGHT)) if data else b""


def unpack(frame: bytes, allowance: int, ratio: int = RATIO) -> bytes:
    """Return what a frame, or the first pieces of one, holds.

    Raises:
        TapeError: it is no frame, or holds more than `allowance` and `ratio` times its size.
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
        raise TapeError(f"tracefork: a segment does not decompress: {error}.") from error
    if len(data) > limit:
        raise TapeError(
            f"tracefork: a segment of {len(frame)} bytes unpacks to more than {limit}: "
            "no recorder writes that."
        )
    if decompressor.unused_data:
        raise TapeError("tracefork: a segment does not decompress: something lies behind its end.")
    return data


def _options(level: int) -> dict[int, int]:
    return {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.window_log: _WINDOW_LOG,
        zstd.CompressionParameter.checksum_flag: 1,
    }
