"""The codec of event streams, beside botocore's own reader.

`TRACEFORK_EXAMPLES=3000` tries that many cases of each property.
"""

from __future__ import annotations

import json
import os
from binascii import crc32
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from struct import pack
from uuid import UUID

import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer, ParserError
from hypothesis import given, settings
from hypothesis import strategies as st

from tracefork_bedrock.formats import event_stream
from tracefork_bedrock.formats.event_stream import Decoder, Frame, FrameError, Header

EXAMPLES = settings(max_examples=int(os.environ.get("TRACEFORK_EXAMPLES", "60")), deadline=None)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

NAMES = st.text(min_size=1, max_size=40)
MOMENTS = st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(microsecond=5000))
VALUES: st.SearchStrategy[Header] = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(max_size=60),
    st.text(max_size=60),
    MOMENTS,
    st.uuids(),
)
FRAMES = st.builds(
    Frame,
    st.dictionaries(NAMES, VALUES, max_size=6),
    st.binary(max_size=300),
)


def as_botocore_reads(headers: Mapping[str, Header]) -> dict[str, object]:
    """botocore returns timestamps as milliseconds and UUIDs as bytes."""
    read: dict[str, object] = {}
    for name, value in headers.items():
        if isinstance(value, datetime):
            read[name] = (value - EPOCH) // timedelta(milliseconds=1)
        else:
            read[name] = value.bytes if isinstance(value, UUID) else value
    return read


def by_botocore(data: bytes) -> list[tuple[dict[str, object], bytes]]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return [(message.headers, message.payload) for message in buffer]


@EXAMPLES
@given(st.lists(FRAMES, max_size=4))
def test_botocore_reads_each_frame_that_we_write(frames: list[Frame]) -> None:
    """A fork's answer passes the parser of the agent's own library, checksums included."""
    read = by_botocore(event_stream.join(frames))
    assert read == [(as_botocore_reads(frame.headers), frame.payload) for frame in frames]


@EXAMPLES
@given(st.lists(FRAMES, max_size=4), st.lists(st.integers(0, 2000), max_size=6))
def test_frames_come_back_whatever_the_cuts(frames: list[Frame], cuts: list[int]) -> None:
    """A network cuts a stream anywhere, in the middle of a prelude too."""
    data = event_stream.join(frames)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    decoder = Decoder()
    read = [frame for at, to in pairwise(places) for frame in decoder.feed(data[at:to])]
    assert read == frames
    assert decoder.pending == 0


@EXAMPLES
@given(FRAMES, FRAMES, st.data())
def test_a_flipped_bit_is_an_error_as_in_botocore(
    first: Frame, second: Frame, data: st.DataObject
) -> None:
    """The frames before the damage are kept; the damage is named, and nothing after it is read."""
    whole = event_stream.encode(first)
    stream = bytearray(whole + event_stream.encode(second))
    at = data.draw(st.integers(8 * len(whole), 8 * len(stream) - 1))
    stream[at // 8] ^= 1 << at % 8
    frames, damage = event_stream.decode(bytes(stream))
    assert frames == [first]
    assert damage is not None
    with pytest.raises(ParserError):
        by_botocore(bytes(stream))


@EXAMPLES
@given(st.binary(max_size=200))
def test_bytes_that_are_no_frames_are_one_error(data: bytes) -> None:
    """Whatever a server sends, reading it ends with frames and a sentence."""
    frames, damage = event_stream.decode(data)
    assert not frames
    assert (damage is None) == (not data)


@EXAMPLES
@given(st.binary(max_size=60))
def test_headers_that_cannot_be_read_are_one_error(headers: bytes) -> None:
    """The checksums of a hostile frame may well be right."""
    lengths = pack(">II", 16 + len(headers), len(headers))
    message = lengths + pack(">I", crc32(lengths)) + headers
    frames, damage = event_stream.decode(message + pack(">I", crc32(message)))
    assert (damage is None) == (len(frames) == 1)


@pytest.mark.parametrize(("length", "headers"), [(2**32 - 1, 0), (16, 2**31), (0, 0), (15, 0)])
def test_an_impossible_length_is_refused_before_its_bytes_arrive(length: int, headers: int) -> None:
    """Waiting for four gigabytes would hide the damage, and fill the memory."""
    lengths = pack(">II", length, headers)
    with pytest.raises(FrameError, match="invalid"):
        list(Decoder().feed(lengths + pack(">I", crc32(lengths))))


def test_a_stream_that_is_cut_off_says_after_how_many_bytes() -> None:
    """`show` prints it: the frames before the cut are still what arrived."""
    data = event_stream.encode(event_stream.event("chunk", b"{}"))
    assert event_stream.decode(data + data[:20]) == (
        [event_stream.event("chunk", b"{}")],
        "the last frame is cut off after 20 bytes",
    )


def test_an_exception_frame_has_its_name() -> None:
    """Services report errors in the middle of a stream in frames of their own."""
    made = event_stream.exception("throttlingException", json.dumps({"message": "slow"}).encode())
    assert (made.kind, made.name) == ("exception", "throttlingException")
    ((headers, _),) = by_botocore(event_stream.encode(made))
    assert headers[":exception-type"] == "throttlingException"


def test_a_header_that_does_not_fit_is_refused() -> None:
    """Its length has two bytes: a longer text would be cut, and the frame unreadable."""
    with pytest.raises(FrameError, match="65535"):
        event_stream.encode(Frame({"long": "x" * 2**16}))
    with pytest.raises(FrameError, match="64 bits"):
        event_stream.encode(Frame({"large": 2**63}))
    with pytest.raises(FrameError, match="255"):
        event_stream.encode(Frame({"n" * 256: True}))
    with pytest.raises(FrameError, match="at most"):
        event_stream.encode(Frame({}, bytes(event_stream.MOST_PAYLOAD + 1)))


def test_botocore_still_finds_a_wrong_checksum() -> None:
    """The control: its reader, which the tests above rely on, does check."""
    data = bytearray(event_stream.encode(event_stream.event("chunk", b"{}")))
    data[-6] ^= 1
    with pytest.raises(ChecksumMismatch):
        by_botocore(bytes(data))
