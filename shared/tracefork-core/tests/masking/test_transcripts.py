"""Of a large body that is sent again, only the new part is searched, and its secrets are found."""

from __future__ import annotations

import pytest

from tracefork_core.exchange.contract import Request
from tracefork_core.masking.masking import Masking

KEY = b"tk-7Jq0xWmB4c9LrYv2"
HELD = b"tracefork-secret-SERVICE_API_KEY"
BLOCK = 16 * 1024
TRANSCRIPT = b"".join(b"step %06d said so\n" % n for n in range(5000))
SIZE = len(TRANSCRIPT)
HALF = len(KEY) // 2
PLACES = {
    f"{where} {name}": at + shift
    for where, at in {
        "first block": BLOCK,
        "second block": 2 * BLOCK,
        "last block": SIZE - BLOCK,
        "last but one": SIZE - 2 * BLOCK,
    }.items()
    for name, shift in {"ends": -len(KEY), "is cut": -HALF, "begins": 0}.items()
} | {"start": 0, "end": SIZE - len(KEY)}


@pytest.fixture
def masking(monkeypatch: pytest.MonkeyPatch) -> Masking:
    """Return a masking that knows a single value."""
    monkeypatch.setenv("SERVICE_API_KEY", KEY.decode())
    return Masking()


def sent(masking: Masking, body: bytes) -> bytes:
    """Return the masked body of a request."""
    return masking.request(Request("POST", "http://a.test/", (), body, "test")).body


def with_part(place: int, part: bytes) -> bytes:
    """Return the transcript with other bytes at an offset."""
    return TRANSCRIPT[:place] + part + TRANSCRIPT[place + len(part) :]


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("before", [b"", KEY[:HALF]], ids=["new", "begun before"])
def test_a_secret_in_a_body_that_was_clean_is_masked(
    masking: Masking, place: int, before: bytes
) -> None:
    """At any offset, also if the earlier body already held its first half."""
    clean = with_part(place, before)
    assert sent(masking, clean) == clean
    for body in (with_part(place, KEY), clean[:place] + KEY + clean[place:]):
        assert KEY not in sent(masking, body)
        assert sent(masking, body) == body.replace(KEY, HELD)


def test_a_secret_whose_second_half_was_there_is_masked(masking: Masking) -> None:
    """Only its first half is in the new part."""
    for place in PLACES.values():
        clean = with_part(place + HALF, KEY[HALF:])
        assert sent(masking, clean) == clean
        assert sent(masking, with_part(place, KEY)) == with_part(place, KEY).replace(KEY, HELD)
