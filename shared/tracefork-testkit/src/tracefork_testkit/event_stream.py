"""Frames of AWS event streams, with their checksums."""

from __future__ import annotations

import struct
from binascii import crc32

from tracefork_testkit.dialect import Json, encode

MEDIA_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7


def event(name: str, value: Json) -> bytes:
    """Return the frame of an event."""
    return _frame({":event-type": name, ":message-type": "event"}, encode(value))


def exception(name: str, value: Json) -> bytes:
    """Return the frame of an exception, which ends a stream."""
    return _frame({":exception-type": name, ":message-type": "exception"}, encode(value))


def _frame(kind: dict[str, str], payload: bytes) -> bytes:
    fields = {**kind, ":content-type": "application/json"}
    headers = b"".join(_header(name, value) for name, value in fields.items())
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = lengths + struct.pack(">I", crc32(lengths)) + headers + payload
    return message + struct.pack(">I", crc32(message))


def _header(name: str, value: str) -> bytes:
    label, content = name.encode(), value.encode()
    return struct.pack(
        f">B{len(label)}sBH{len(content)}s", len(label), label, _STRING, len(content), content
    )
