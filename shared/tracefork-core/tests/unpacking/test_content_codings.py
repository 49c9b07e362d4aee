"""Content codings are undone, in order, piece by piece, and within their bound."""

from __future__ import annotations

import gzip
import random
import sys
import tracemalloc
import zlib

import brotli
import pytest

from tracefork_core.providers import decode
from tracefork_core.unpacking import (
    Bound,
    NotInCodingError,
    PastBoundError,
    decompress,
    unpacked,
    unpacker,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PLAIN = b'{"some": "json", "again": "json"}' * 50


def raw_deflate(body: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(body) + deflater.flush()


CODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
    "br": brotli.compress,
}


@pytest.mark.parametrize("name", CODINGS)
def test_each_coding_is_undone(name: str) -> None:
    """In any case of its name, and with the plain bytes as the result."""
    assert decompress(CODINGS[name](PLAIN), name.upper()) == PLAIN


def test_raw_deflate_is_undone_too() -> None:
    """Some servers send raw deflate under the name of zlib's format."""
    assert decompress(raw_deflate(PLAIN), "deflate") == PLAIN


def test_codings_are_undone_last_first() -> None:
    """A body coded twice is decoded twice, in the right order."""
    twice = gzip.compress(brotli.compress(PLAIN))
    assert decompress(twice, "br, identity, gzip") == PLAIN
    assert decompress(twice, "gzip, br") != PLAIN


def test_gzip_members_and_zstd_frames_are_joined() -> None:
    """A body may be several compressed pieces in a row."""
    assert decompress(gzip.compress(b"a") + gzip.compress(b"b"), "gzip") == b"ab"
    assert decompress(zstd.compress(b"a") + zstd.compress(b"b"), "zstd") == b"ab"


@pytest.mark.parametrize("name", CODINGS)
def test_a_body_already_decoded_is_taken_as_it_is(name: str) -> None:
    """Some recorders decompress a body but keep the header."""
    assert decompress(PLAIN, name) == PLAIN


@pytest.mark.parametrize("name", ["gzip", "deflate"])
def test_a_truncated_body_decompresses_up_to_the_cut(name: str) -> None:
    """An abandoned download can be read as far as it arrived."""
    noise = bytes(range(256)) * 40
    plain = decompress(CODINGS[name](noise)[:-20], name)
    assert plain is not None
    assert noise.startswith(plain)


@pytest.mark.parametrize("name", CODINGS)
def test_a_bomb_is_refused_without_being_unpacked(name: str) -> None:
    """Decompression stops just past the limit, whatever the full size is."""
    bomb = CODINGS[name](bytes(32 * 2**20))
    tracemalloc.start()
    try:
        assert decompress(bomb, name, Bound(size=2**20)) is None
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", CODINGS)
def test_a_bomb_stops_at_the_ratio(name: str) -> None:
    """Each piece of a stream adds to what the body may unpack to; zeros use that up at once."""
    bomb = CODINGS[name](bytes(8 * 2**20))
    unpack = unpacker(name, Bound(ratio=10, allowance=2**20))
    assert unpack is not None
    sizes = (
        len(block) for at in range(0, len(bomb), 100) for block in unpack.feed(bomb[at : at + 100])
    )
    total = 0
    with pytest.raises(PastBoundError):  # noqa: PT012 - what came before it counts
        for size in sizes:
            total += size
    assert total <= 2**20 + 10 * len(bomb)
    assert unpacked(bomb, name, Bound(ratio=10**7)) == bytes(8 * 2**20)


@pytest.mark.parametrize("names", [("gzip", "gzip"), ("zstd", "br"), ("deflate", "gzip", "zstd")])
def test_a_bomb_in_a_bomb_stops_at_the_ratio_of_the_whole(names: tuple[str, ...]) -> None:
    """A packed gzip bomb packs as well again, so each layer alone would look harmless."""
    bomb = bytes(30 * 2**20)
    for name in names:
        bomb = CODINGS[name](bomb)
    assert decompress(bomb, ",".join(names)) is None
    with pytest.raises(PastBoundError):
        unpacked(bomb, ",".join(names))


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_body_of_countless_empty_members_stops(name: str) -> None:
    """They hold nothing, so no bound on bytes stops them, and each takes time."""
    body = CODINGS[name](b"") * 20_000
    with pytest.raises(PastBoundError):
        unpacked(body, name)
    assert unpacked(body[: len(body) // 4], name) == b""


def test_no_server_packs_a_body_six_times() -> None:
    """Each layer costs time, so a header with a hundred of them is not followed."""
    assert unpacker(", ".join(["gzip"] * 5)) is not None
    assert unpacker(", ".join(["gzip"] * 6)) is None
    assert decompress(b"", ", ".join(["gzip"] * 6)) is None


def test_a_frame_that_asks_for_a_huge_window_is_refused() -> None:
    """Zstandard reserves the window before it unpacks a byte: up to 2 GiB."""
    options: dict[int, int] = {zstd.CompressionParameter.window_log: 27}
    packer = zstd.ZstdCompressor(options=options)
    frame = packer.compress(PLAIN, zstd.ZstdCompressor.FLUSH_BLOCK)
    with pytest.raises(NotInCodingError, match="memory"):
        unpacked(frame, "zstd")


@pytest.mark.parametrize("name", CODINGS)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_body_may_come_in_any_pieces(name: str, size: int) -> None:
    """A piece may end within a header, and what follows the last member is ignored."""
    packed, plain = CODINGS[name](PLAIN), b""
    unpack = unpacker(name)
    assert unpack is not None
    for at in range(0, len(packed), size):
        plain += b"".join(unpack.feed(packed[at : at + size]))
    assert plain + b"".join(unpack.feed(bytes(8))) == PLAIN


@pytest.mark.parametrize("name", CODINGS)
def test_large_bodies_come_in_blocks(name: str) -> None:
    """Nothing is lost between them."""
    noise = random.Random(5).randbytes(300_000)
    plain = noise + bytes(100_000) + noise[:70_000]
    unpack = unpacker(name)
    assert unpack is not None
    blocks = list(unpack.feed(CODINGS[name](plain)))
    assert b"".join(blocks) == plain
    assert len(blocks) > 3


@pytest.mark.parametrize("name", CODINGS)
def test_strict_unpacking_refuses_other_bytes(name: str) -> None:
    """A caller that must know what is in a body is told that it does not."""
    with pytest.raises(NotInCodingError):
        unpacked(PLAIN, name)


def test_a_plain_body_has_the_same_limit() -> None:
    """The limit is on the result, compressed or not."""
    assert decompress(b"aaaa", "", Bound(size=4)) == b"aaaa"
    assert decompress(b"aaaaa", "", Bound(size=4)) is None


def test_an_undecodable_body_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an unknown coding, or one whose library is not installed."""
    assert decompress(PLAIN, "compress") is None
    for module in ("brotli", "brotlicffi"):
        monkeypatch.setitem(sys.modules, module, None)
    assert decompress(brotli.compress(PLAIN), "br") is None
    with pytest.raises(NotInCodingError, match="br is unknown"):
        unpacked(brotli.compress(PLAIN), "br")


def test_a_brotli_without_an_output_limit_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases that cannot limit their output could be filled up by a hostile body."""

    class Unbounded:
        def is_finished(self) -> bool:
            return False

        def process(self, data: bytes) -> bytes:
            raise AssertionError(f"unpacked {data!r} without a bound")

    monkeypatch.setattr(brotli, "Decompressor", Unbounded)
    assert decompress(brotli.compress(PLAIN), "br") is None


def test_a_call_is_read_through_its_codings() -> None:
    """Request and answer are decoded by their own headers."""
    request = zlib.compress(b'{"messages": [{"role": "user", "content": "hi"}]}')
    answer = gzip.compress(b'{"choices": [{"message": {"content": "yo"}}]}')
    call = decode(
        "POST",
        "http://localhost/v1/chat/completions",
        [("Content-Encoding", "deflate")],
        request,
        200,
        [("content-encoding", "gzip")],
        answer,
    )
    assert call is not None
    assert (call.text, len(call.input)) == ("yo", 1)
