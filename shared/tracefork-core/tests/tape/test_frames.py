"""Frames unpack to the packed bytes, up to any commit, and never beyond their limit."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracefork_core import TapeError
from tracefork_core.tape.frames import RATIO, Packer, pack, unpack

PIECES = st.lists(st.one_of(st.binary(max_size=300), st.just(b"again " * 50)), max_size=12)


@given(PIECES)
def test_every_start_of_a_frame_unpacks(pieces: list[bytes]) -> None:
    """The pieces up to a commit hold exactly the bytes that were added until then."""
    packer, frame, plain = Packer(), b"", b""
    for piece in pieces:
        frame, plain = frame + packer.add(piece), plain + piece
        assert unpack(frame, len(plain)) == plain


@given(PIECES)
def test_a_whole_frame_unpacks(pieces: list[bytes]) -> None:
    """The same holds for bytes that were packed at once; no bytes give no bytes."""
    plain = b"".join(pieces)
    assert unpack(pack(plain), len(plain)) == plain


@given(PIECES, st.data())
def test_a_damaged_frame_raises_a_tape_error_or_is_shorter(
    pieces: list[bytes], data: st.DataObject
) -> None:
    """Cut or changed bytes raise no other error."""
    frame = bytearray(pack(b"".join(pieces)) or b"\0")
    place = data.draw(st.integers(0, len(frame) - 1))
    frame[place] ^= data.draw(st.integers(1, 255))
    stop = data.draw(st.integers(0, len(frame)))
    with suppress(TapeError):
        unpack(bytes(frame[:stop]), 10_000)


def test_a_frame_is_unpacked_up_to_its_limit_and_not_beyond() -> None:
    """One byte more than the allowance and the ratio permit is refused before it is in memory."""
    plain = bytes(5_000_000)
    frame = pack(plain)
    short = len(plain) - RATIO * len(frame)
    assert unpack(frame, short) == plain
    with pytest.raises(TapeError):
        unpack(frame, short - 1)
    with pytest.raises(TapeError):
        unpack(frame + b"x", len(plain))
