"""Bodies in every content coding are searched, piece by piece."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import pytest
from backports import zstd

from tracefork_core.masking.body import MaskedBody
from tracefork_core.masking.redactor import Redactor
from tracefork_core.unpacking import unpacked

from .conftest import KEY

NOISE = random.Random(7).randbytes(300).hex().encode()
BODY = NOISE + KEY.encode() + NOISE
HELD = BODY.replace(KEY.encode(), b"tracefork-secret-A_KEY")


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


CODINGS: dict[str, tuple[str | None, Callable[[bytes], bytes]]] = {
    "none": (None, bytes),
    "gzip": ("gzip", gzip.compress),
    "gzip in two members": ("x-gzip", lambda d: gzip.compress(d[:301]) + gzip.compress(d[301:])),
    "deflate": ("deflate", zlib.compress),
    "deflate without a header": ("deflate", bare),
    "zstd": ("zstd", zstd.compress),
    "brotli": ("br", brotli.compress),
    "gzip twice": ("gzip, gzip", lambda d: gzip.compress(gzip.compress(d))),
    "gzip in brotli": ("gzip, br", lambda d: brotli.compress(gzip.compress(d))),
}


@pytest.mark.parametrize(("coding", "pack"), CODINGS.values(), ids=list(CODINGS))
@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_a_secret_is_found_in_every_coding(
    coding: str | None, pack: Callable[[bytes], bytes], size: int
) -> None:
    """Wherever the body is cut; no piece that unpacks to a part of the secret is stored."""
    packed = pack(BODY)
    pieces = [packed[i : i + size] for i in range(0, len(packed), size)]
    body = MaskedBody(Redactor({"A_KEY": [KEY]}), coding)
    shown = b"".join(body.feed(piece) for piece in pieces)
    assert KEY[:8].encode() not in (unpacked(shown, coding) if coding else shown)
    masked = body.finish(pieces, whole=True)
    assert masked is not None
    assert masked.unpacked == (coding is not None)
    assert len(masked.pieces) == len(pieces)
    assert b"".join(masked.pieces) == HELD


@pytest.mark.parametrize(
    ("begins", "goes_on"),
    [
        ("github_pat_", "A1b2" * 20),
        ("sk-", "A1b2" * 12),
        ("xoxb-", "A1b2" * 8),
        ("AKIA", "ABCDEFGH23456789"),
        ("Bearer ", "A1b2" * 8),
        ("eyJ", "A1b2A1b2.eyJA1b2A1b2.A1b2A1b2A1b2A1b2"),
        (
            "-----BEGIN RSA PRIVATE KEY-----",
            "\nA1b2A1b2A1b2A1b2A1b2\n-----END RSA PRIVATE KEY-----",
        ),
    ],
)
def test_a_token_that_arrives_byte_by_byte_is_masked(begins: str, goes_on: str) -> None:
    """The tape waits from its first letters to its end."""
    text = f"say {begins}{goes_on}, please".encode()
    body = MaskedBody(Redactor({}), None)
    shown = b"".join(body.feed(text[i : i + 1]) for i in range(len(text)))
    assert goes_on[:4].encode() not in shown
    assert shown.endswith(b", please")
    masked = body.finish([text], whole=True)
    assert masked is not None
    assert b"A1b2" not in masked.pieces[0]


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd", "gzip, br", "unheard-of"])
def test_a_body_in_another_coding_is_searched_as_it_is(coding: str) -> None:
    """Servers send wrong content-encoding headers."""
    body = MaskedBody(Redactor({"A_KEY": [KEY]}), coding)
    body.feed(BODY)
    masked = body.finish([BODY], whole=True)
    assert masked is not None
    assert masked.pieces == [HELD]
