"""Frames of AWS event streams: the binary form of an answer that Bedrock streams.

A frame has twelve bytes of prelude (the length of the frame, the length of its headers, a CRC of
these two), then headers, a payload, and a CRC of all bytes before it. botocore reads frames and
writes none, and its reader is private: hence both directions here.

Headers tell what a frame is: `:message-type` is event, exception or error, and `:event-type`,
`:exception-type` or `:error-code` names which one. The payload of Bedrock's frames is JSON.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from struct import Struct, error, pack, unpack_from
from typing import TypeAlias
from uuid import UUID

Header: TypeAlias = "bool | int | str | bytes | datetime | UUID"

MEDIA_TYPE = "application/vnd.amazon.eventstream"
"""The content type of an answer that is an event stream."""
MOST_HEADERS, MOST_PAYLOAD = 128 * 1024, 24 * 2**20
"""The most bytes of headers and of payload that a frame may have; botocore has the same limits."""

_PRELUDE = Struct(">III")
_AROUND = _PRELUDE.size + 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TRUE, _FALSE, _BYTES, _STRING, _TIMESTAMP, _UUID = 0, 1, 6, 7, 8, 9
_INTEGERS = {2: Struct(">b"), 3: Struct(">h"), 4: Struct(">i"), 5: Struct(">q")}


class FrameError(ValueError):
    """Bytes are no frame, or a value does not fit into one."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of an event stream."""

    headers: Mapping[str, Header] = field(default_factory=dict)
    payload: bytes = b""

    @property
    def kind(self) -> str:
        """What sort of message it is: event, exception or error; empty if no header says it."""
        return self._header(":message-type")

    @property
    def name(self) -> str:
        """Which event, exception or error it is; empty if no header says it."""
        return (
            self._header(":event-type")
            or self._header(":exception-type")
            or self._header(":error-code")
        )

    def _header(self, name: str) -> str:
        value = self.headers.get(name)
        return value if isinstance(value, str) else ""


def event(name: str, payload: bytes, content_type: str = "application/json") -> Frame:
    """Return a frame that is an event."""
    return _typed("event", ":event-type", name, payload, content_type)


def exception(name: str, payload: bytes, content_type: str = "application/json") -> Frame:
    """Return a frame that is an exception: the stream ends with it."""
    return _typed("exception", ":exception-type", name, payload, content_type)


def _typed(kind: str, key: str, name: str, payload: bytes, content_type: str) -> Frame:
    headers = {key: name, ":content-type": content_type, ":message-type": kind}
    return Frame(headers, payload)


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame, with its checksums. Integers take the fewest bytes.

    Raises:
        FrameError: a header does not fit, or the frame is too long.
    """
    headers = b"".join(_header(name, value) for name, value in frame.headers.items())
    if len(headers) > MOST_HEADERS or len(frame.payload) > MOST_PAYLOAD:
        raise FrameError(
            f"a frame has at most {MOST_HEADERS} bytes of headers and {MOST_PAYLOAD} of payload"
            f" (got {len(headers)} and {len(frame.payload)})"
        )
    lengths = pack(">II", _AROUND + len(headers) + len(frame.payload), len(headers))
    message = lengths + pack(">I", crc32(lengths)) + headers + frame.payload
    return message + pack(">I", crc32(message))


class Decoder:
    """Read frames from chunks that may be cut anywhere.

    `pending` is how many bytes came of a frame that is not complete yet.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """The bytes that no frame has used."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Yield the frames that a chunk completes.

        Raises:
            FrameError: the bytes are no frame. No later frame can be found then.
        """
        self._buffer += chunk
        while len(self._buffer) >= _PRELUDE.size:
            length = _checked_length(self._buffer)
            if len(self._buffer) < length:
                return
            message = bytes(self._buffer[:length])
            del self._buffer[:length]
            yield _frame(message)


def decode(data: bytes) -> tuple[list[Frame], str | None]:
    """Read all frames of a stream, as far as it is one.

    Returns:
        the frames, and what is wrong with the bytes after them: None if there are none.
    """
    decoder = Decoder()
    frames: list[Frame] = []
    try:
        for frame in decoder.feed(data):
            frames.append(frame)  # noqa: PERF402 - `extend` would lose those before the damage
    except FrameError as damage:
        return frames, str(damage)
    if decoder.pending:
        return frames, f"the last frame is cut off after {decoder.pending} bytes"
    return frames, None


def join(frames: Iterable[Frame]) -> bytes:
    """Return the bytes of a whole stream."""
    return b"".join(map(encode, frames))


def _checked_length(buffer: bytearray) -> int:
    length, headers, checksum = _PRELUDE.unpack_from(buffer)
    if (computed := crc32(buffer[:8])) != checksum:
        raise FrameError(f"the prelude has the checksum {checksum:08x}, not {computed:08x}")
    payload = length - headers - _AROUND
    if headers > MOST_HEADERS or not 0 <= payload <= MOST_PAYLOAD:
        raise FrameError(f"a frame of {length} bytes with {headers} bytes of headers is invalid")
    return int(length)


def _frame(message: bytes) -> Frame:
    (checksum,) = unpack_from(">I", message, len(message) - 4)
    if (computed := crc32(message[:-4])) != checksum:
        raise FrameError(f"a frame has the checksum {checksum:08x}, not {computed:08x}")
    (length,) = unpack_from(">I", message, 4)
    end = _PRELUDE.size + length
    return Frame(dict(_headers(message[_PRELUDE.size : end])), message[end:-4])


def _headers(data: bytes) -> Iterator[tuple[str, Header]]:
    position, names = 0, set[str]()
    while position < len(data):
        try:
            name, position = _text(data, position + 1, data[position])
            value, position = _value(data, position + 1, data[position])
        except (IndexError, error, UnicodeDecodeError, OverflowError) as damage:
            raise FrameError("a frame has unreadable headers") from damage
        if name in names:
            raise FrameError(f"a frame has the header {name!r:.60} twice")
        names.add(name)
        yield name, value


def _text(data: bytes, start: int, length: int) -> tuple[str, int]:
    raw, end = _raw(data, start, length)
    return raw.decode(), end


def _raw(data: bytes, start: int, length: int) -> tuple[bytes, int]:
    if start + length > len(data):
        raise IndexError(start)
    return data[start : start + length], start + length


def _value(data: bytes, start: int, kind: int) -> tuple[Header, int]:
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, start
    if kind in _INTEGERS:
        (number,) = _INTEGERS[kind].unpack_from(data, start)
        return number, start + _INTEGERS[kind].size
    if kind == _TIMESTAMP:
        (milliseconds,) = unpack_from(">q", data, start)
        return _EPOCH + timedelta(milliseconds=milliseconds), start + 8
    if kind == _UUID:
        raw, end = _raw(data, start, 16)
        return UUID(bytes=raw), end
    (length,) = unpack_from(">H", data, start)
    if kind == _BYTES:
        return _raw(data, start + 2, length)
    if kind == _STRING:
        return _text(data, start + 2, length)
    raise IndexError(kind)


def _header(name: str, value: Header) -> bytes:
    label = name.encode()
    if not 0 < len(label) < 2**8:
        raise FrameError(f"the name of a header has 1 to 255 bytes (got {len(label)})")
    return bytes([len(label)]) + label + _written(name, value)


def _written(name: str, value: Header) -> bytes:
    if isinstance(value, bool):
        return bytes([_TRUE if value else _FALSE])
    if isinstance(value, int):
        for kind, form in _INTEGERS.items():
            if -(2 ** (8 * form.size - 1)) <= value < 2 ** (8 * form.size - 1):
                return bytes([kind]) + form.pack(value)
        raise FrameError(f"the header {name!r} has an integer of more than 64 bits")
    if isinstance(value, datetime):
        return pack(">Bq", _TIMESTAMP, (value - _EPOCH) // timedelta(milliseconds=1))
    if isinstance(value, UUID):
        return bytes([_UUID]) + value.bytes
    raw = value.encode() if isinstance(value, str) else value
    if len(raw) >= 2**16:
        raise FrameError(f"the header {name!r} has {len(raw)} bytes; at most 65535 fit")
    return pack(">BH", _STRING if isinstance(value, str) else _BYTES, len(raw)) + raw
