"""Unpack what a stranger has packed: a content coding of a body, within bounds, block by block.

Anybody can pack 4 GB of zeros into 3 KB, and a body is unpacked in the process that records it. So
there is one unpacker, and it stops at a `Bound`. Its bounds count bytes and members and never
seconds: the same body must be masked on a fast machine and on a slow one, or a replay diverges.
Unpacking takes time in proportion to those counts, so they bound the time too.

    for block in unpacker("gzip, br").feed(piece): …     piece by piece, strict
    unpacked(body, "zstd")                               at once, strict
    decompress(body, "gzip")                             at once, as much as can be read

A caller that gets a `PastBoundError` keeps the body as it is and says so.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BLOCK = 64 * 1024
"""Bytes of input that a library is given at once, and about as many of output that it returns."""
_LAYERS = 5
_ZSTD_WINDOW_LOG = 23
"""8 MiB, the largest window that RFC 9659 allows in a response. A frame may ask for 2 GiB."""
_GZIP, _ZLIB, _RAW = 31, 15, -15
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPED = b"\x2a\x4d\x18"
"""What follows the first byte, 0x50 to 0x5f, of a frame that a reader skips."""


class UnpackError(Exception):
    """A body cannot be unpacked."""


class PastBoundError(UnpackError):
    """A body unpacks to more than its bound allows."""


class NotInCodingError(UnpackError):
    """The bytes are not in the coding, or the coding is unknown here."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How much one body may unpack to, at each layer of its codings.

    Attributes:
        size: the most bytes.
        ratio, allowance: it may also be no more than its packed size times `ratio`, plus
            `allowance`.
        members: the most gzip members or zstd frames. Each costs time, and may hold nothing.
    """

    size: int = 16 * 2**20
    ratio: int = 100
    allowance: int = 2**20
    members: int = 10_000


BOUND = Bound()


class Unpacker:
    """Unpacks one body, piece by piece. After an exception it is used up."""

    def __init__(self, layers: list[_Layer], bound: Bound, packed: int = 0) -> None:
        self._layers = layers
        self._bound = bound
        self._packed = packed
        self._sizes = [0] * len(layers)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next piece adds, in blocks of about `BLOCK` bytes.

        Raises:
            PastBoundError: the body unpacks to more than the bound allows.
            NotInCodingError: the bytes are not in the coding.
        """
        self._packed += len(data)
        return self._through(0, data)

    def _through(self, number: int, data: bytes) -> Iterator[bytes]:
        if number == len(self._layers):
            yield data
            return
        bound, layer = self._bound, self._layers[number]
        for at in range(0, len(data), BLOCK):
            for block in layer.feed(data[at : at + BLOCK]):
                self._sizes[number] += len(block)
                most = min(bound.size, bound.allowance + bound.ratio * self._packed)
                if self._sizes[number] > most:
                    raise PastBoundError(
                        f"{self._packed} bytes unpack to more than {most}, which is the bound"
                    )
                yield from self._through(number + 1, block)


def unpacker(codings: str, bound: Bound = BOUND) -> Unpacker | None:
    """Return an unpacker for the codings of a `Content-Encoding` value.

    Return None if one of them is unknown, if its library is not installed, or if they are more than
    any server uses.
    """
    layers: list[_Layer] = []
    for name in reversed(_names(codings)):
        layer = _layer(name, bound.members)
        if layer is None or len(layers) == _LAYERS:
            return None
        layers.append(layer)
    return Unpacker(layers, bound)


def unpacked(body: bytes, codings: str, bound: Bound = BOUND) -> bytes:
    """Return a body without its codings. A truncated body unpacks up to the cut.

    Raises:
        PastBoundError: it unpacks to more than the bound allows.
        NotInCodingError: it is not in these codings, or one of them is unknown here.
    """
    unpack = unpacker(codings, bound)
    if unpack is None:
        raise NotInCodingError(f"{codings} is unknown here")
    return b"".join(unpack.feed(body))


def decompress(body: bytes, codings: str, bound: Bound = BOUND) -> bytes | None:
    """Return what can be read of a body: a corrupt or truncated one, up to where it breaks.

    A body that is not in the named coding is returned unchanged, since some recorders decompress
    bodies but keep the header. Return None if it unpacks to more than the bound allows, or if a
    coding is unknown here.
    """
    plain = body
    names = _names(codings)
    for name in reversed(names):
        layer = _layer(name, bound.members)
        if layer is None or len(names) > _LAYERS:
            return None
        # The ratio is that of the whole chain: what one layer blows up is no credit for the next.
        unpack = Unpacker([layer], bound, len(body) - len(plain))
        blocks: list[bytes] = []
        try:
            for block in unpack.feed(plain):
                blocks.append(block)  # noqa: PERF402 - those before an error count
        except PastBoundError:
            return None
        except NotInCodingError:
            pass
        plain = b"".join(blocks) or plain
    return plain if len(plain) <= bound.size else None


def _names(codings: str) -> list[str]:
    names = [name.strip().lower() for name in codings.split(",")]
    return [name for name in names if name not in ("", "identity")]


class _Layer(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next bytes unpack to."""


def _layer(name: str, members: int) -> _Layer | None:
    match name:
        case "gzip" | "x-gzip":
            return _Members(lambda: _Zlib(_GZIP), _is_gzip, members)
        case "deflate":
            return _Deflate()
        case "zstd":
            return _Members(_Zstd, _is_zstd, members)
        case "br":
            return _brotli()
    return None


class _Part(Protocol):
    """One gzip member, one zstd frame. After `is_over`, `rest` is what follows it."""

    is_over: bool
    rest: bytes

    def feed(self, data: bytes) -> Iterator[bytes]: ...


class _Zlib:
    def __init__(self, bits: int) -> None:
        self._state = zlib.decompressobj(bits)
        self.is_over = False
        self.rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        state, block = self._state, b""
        while data or len(block) == BLOCK:
            try:
                block = state.decompress(data, BLOCK)
            except zlib.error as error:
                raise NotInCodingError(str(error)) from error
            data = state.unconsumed_tail
            if block:
                yield block
            if state.eof:
                self.is_over, self.rest = True, state.unused_data
                return


class _Zstd:
    def __init__(self) -> None:
        self._state = zstd.ZstdDecompressor(
            options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        )
        self.is_over = False
        self.rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        state = self._state
        while True:
            try:
                block = state.decompress(data, BLOCK)
            except zstd.ZstdError as error:
                raise NotInCodingError(str(error)) from error
            data = b""
            if block:
                yield block
            if state.eof:
                self.is_over, self.rest = True, state.unused_data
                return
            if state.needs_input:
                return


class _Members:
    """Members that follow one another. What follows them and is none is ignored, as clients do."""

    def __init__(
        self, start: Callable[[], _Part], may_start: Callable[[bytes], bool], most: int
    ) -> None:
        self._start = start
        self._may_start = may_start
        self._left = most
        self._part: _Part | None = None
        self._beginning = b""
        self._is_first = True
        self._is_over = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._is_over:
            if self._part is None:
                data = self._beginning + data
                if len(data) < 4:
                    self._beginning = data
                    return
                self._beginning = b""
                if not self._may_start(data):
                    if self._is_first:
                        raise NotInCodingError("it does not begin like this coding")
                    self._is_over = True
                    return
                self._left -= 1
                if self._left < 0:
                    raise PastBoundError("it has more members than the bound")
                self._part, self._is_first = self._start(), False
            yield from self._part.feed(data)
            if not self._part.is_over:
                return
            data, self._part = self._part.rest, None


class _Deflate:
    """Unpacks deflate, with or without the zlib header that some servers leave out."""

    def __init__(self) -> None:
        self._beginning = b""
        self._part: _Zlib | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._part is None:
            data = self._beginning + data
            if len(data) < 2:
                self._beginning = data
                return
            # Without its header, a stream that begins so would be one that no packer makes.
            is_zlib = data[0] & 15 == 8 and int.from_bytes(data[:2]) % 31 == 0
            if data[:1] in (b"{", b"["):
                raise NotInCodingError("it is JSON")
            self._part = _Zlib(_ZLIB if is_zlib else _RAW)
        if not self._part.is_over:
            yield from self._part.feed(data)


class _Brotli:
    def __init__(self, library: Any) -> None:
        self._state = library.Decompressor()
        self._error: type[Exception] = library.error

    def feed(self, data: bytes) -> Iterator[bytes]:
        state = self._state
        while not state.is_finished():
            try:
                block = state.process(data, output_buffer_limit=BLOCK)
            except self._error as error:
                raise NotInCodingError(str(error)) from error
            data = b""
            if block:
                yield block
            elif state.can_accept_more_data():  # It may hold more output although it accepts.
                return


def _brotli() -> _Brotli | None:
    for name in ("brotli", "brotlicffi"):
        try:
            library = import_module(name)
        except ImportError:
            continue
        # Releases before 1.2 cannot limit their output, and have not this method.
        if hasattr(library.Decompressor, "can_accept_more_data"):
            return _Brotli(library)
    return None


def _is_gzip(data: bytes) -> bool:
    return data.startswith(_GZIP_MAGIC)


def _is_zstd(data: bytes) -> bool:
    skipped = 0x50 <= data[0] <= 0x5F and data[1:4] == _ZSTD_SKIPPED
    return skipped or data.startswith(_ZSTD_MAGIC)
