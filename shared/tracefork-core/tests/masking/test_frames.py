"""A masked frame of an AWS event stream is a frame: a replay reads it as the recording did."""

from __future__ import annotations

from base64 import b64encode

import pytest

from tracefork_core.masking.body import MaskedBody
from tracefork_core.masking.redactor import Redactor
from tracefork_testkit.event_stream import event

KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2
PLACEHOLDER = b"tracefork-secret-"


def masked(body: bytes, size: int) -> list[bytes]:
    """Return a body that arrives in pieces of a size, as the tape gets it."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    feeding = MaskedBody(Redactor({}), None)
    for piece in pieces:
        feeding.feed(piece)
    finished = feeding.finish(pieces, whole=True)
    return pieces if finished is None else finished.pieces


def frame(text: str, *, packed: bool) -> bytes:
    return event("chunk", {"bytes": b64encode(text.encode()).decode()} if packed else {"t": text})


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "base64"])
@pytest.mark.parametrize("size", [7, 41, 10_000])
def test_the_lengths_and_checksums_are_those_of_the_masked_frames(size: int, packed: bool) -> None:
    """Wherever the network cut them, and where the payload is base64, too."""
    texts = ["before", f"say {KEY} twice: {KEY}.", "between", f"{KEY}", "behind"]
    body = b"".join(frame(text, packed=packed) for text in texts)
    pieces = masked(body, size)
    assert len(pieces) == -(-len(body) // size)
    placeholder = "tracefork-secret-openai_key"
    expected = [frame(text.replace(KEY, placeholder), packed=packed) for text in texts]
    assert b"".join(pieces) == b"".join(expected)


def test_a_frame_that_was_damaged_stays_damaged() -> None:
    """The agent's client failed at it, and fails again in a replay."""
    body = bytearray(frame(f"say {KEY}", packed=False))
    body[-1] ^= 1
    whole = b"".join(masked(bytes(body), 50))
    assert PLACEHOLDER in whole
    assert whole[:12] == bytes(body[:12])
    assert whole[-4:] == bytes(body[-4:])


def test_a_frame_that_is_cut_off_stays_cut_off() -> None:
    """Its length says that more was to come."""
    first = frame(f"one {KEY}", packed=False)
    cut = frame(f"two {KEY} and more", packed=False)[:-9]
    whole = b"".join(masked(first + cut, 50))
    assert whole.startswith(frame("one tracefork-secret-openai_key", packed=False))
    assert cut[:12] in whole


def test_what_is_no_event_stream_is_masked_as_ever() -> None:
    """Only frames have lengths in them."""
    body = b'{"text": "' + KEY.encode() + b'", "more": "' + KEY.encode() + b'"}'
    assert b"".join(masked(body, 9)) == body.replace(KEY.encode(), PLACEHOLDER + b"openai_key")
