"""Content encodings are undone, in order, and within the size limit."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
import zlib

import brotli
import pytest

from tracefork_core.providers import decode, decompress

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
        assert decompress(bomb, name, limit=2**20) is None
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


def test_a_plain_body_has_the_same_limit() -> None:
    """The limit is on the result, compressed or not."""
    assert decompress(b"aaaa", "", limit=4) == b"aaaa"
    assert decompress(b"aaaaa", "", limit=4) is None


def test_an_undecodable_body_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an unknown coding, or one whose library is not installed."""
    assert decompress(PLAIN, "compress") is None
    for module in ("brotli", "backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    assert decompress(brotli.compress(PLAIN), "br") is None
    assert decompress(zstd.compress(PLAIN), "zstd") is None


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
