"""Bodies that arrive in pieces: no split hides a secret, and the pieces stay as they were."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import httpx2
import pytest

from tracefork_core import Tape, record, replay

from .conftest import KEY, PASSWORD, Send, everything_kept, forms

PLACEHOLDER = b"tracefork-secret-SERVICE_API_KEY"
BODY = b"data: " + KEY.encode() + b" after\n\n"

pytestmark = pytest.mark.usefixtures("secrets")


async def test_a_secret_split_at_every_byte_is_masked(tape: Path, parrot: str, send: Send) -> None:
    """The placeholder is in the piece where the secret begins; the number of pieces stays."""
    places = range(1, len(BODY))
    with record(tape):
        for at in places:
            url = f"{parrot}/split?at={at}"
            assert await send("POST", url, content=BODY) == [BODY[:at], BODY[at:]]
        assert KEY.encode() not in everything_kept(tape.parent)
    with Tape.open(tape) as recorded:
        for exchange, at in zip(recorded.exchanges, places, strict=True):
            first, second = exchange.chunks
            assert first + second == BODY.replace(KEY.encode(), PLACEHOLDER)
            assert (PLACEHOLDER in first) == (at > BODY.index(KEY.encode()))
    with replay(tape) as run:
        for at in places:
            url = f"{parrot}/split?at={at}"
            assert PLACEHOLDER in b"".join(await send("POST", url, content=BODY))
    assert run.digest == run.tape.digest


async def test_a_secret_that_arrives_byte_by_byte_is_masked_in_every_form(
    tape: Path, parrot: str, send: Send
) -> None:
    """Not even the journal holds it; the pieces with the rest of it are empty."""
    bodies = [b"<" + form + b">" for form in forms(PASSWORD).values()]
    with record(tape):
        for body in bodies:
            pieces = await send("POST", f"{parrot}/bytewise", content=body)
            assert pieces == [bytes([byte]) for byte in body]
            assert body[1:-1] not in everything_kept(tape.parent)
    kept = everything_kept(tape.parent)
    with replay(tape) as run:
        for body, exchange in zip(bodies, run.tape.exchanges, strict=True):
            assert body[1:-1] not in kept
            assert len(exchange.chunks) == len(body)
            assert exchange.response_body == exchange.request_body
            assert b"" in exchange.chunks
            again = await send("POST", f"{parrot}/bytewise", content=body)
            assert again == [piece for piece in exchange.chunks if piece]


async def test_ordinary_pieces_are_on_the_tape_at_once(tape: Path, parrot: str, send: Send) -> None:
    """Only a piece that may be the beginning of a secret waits for the next."""
    with record(tape), httpx2.Client(verify=False) as client:
        body = b"plain " + KEY.encode()
        with client.stream("POST", f"{parrot}/split?at=12", content=body) as response:
            pieces = response.iter_raw()
            assert next(pieces) == body[:12]
            with Tape.open(tape) as so_far:
                assert so_far.exchanges[0].response_body == b"plain "
            assert list(pieces) == [body[12:]]


async def test_a_stream_abandoned_inside_a_secret_keeps_no_half_of_it(
    tape: Path, parrot: str
) -> None:
    """Half a key reveals much of it; a body that ended regularly keeps its end."""
    half = KEY[:12].encode()
    with record(tape), httpx2.Client(verify=False) as client:
        url = f"{parrot}/split?at=13"
        with client.stream("POST", url, content=b"." + KEY.encode()) as response:
            assert next(response.iter_raw()) == b"." + half
        assert client.post(f"{parrot}/bytewise", content=b"." + half).content == b"." + half
    with Tape.open(tape) as recorded:
        given_up, whole = recorded.exchanges
        assert given_up.response_body == b"." + PLACEHOLDER
        assert whole.response_body == b"." + half


async def test_a_failure_inside_a_secret_keeps_no_half_of_it(tape: Path, parrot: str) -> None:
    """A broken connection is recorded with the bytes before the secret."""
    body = b"." + KEY[:12].encode()
    with record(tape):
        async with aiohttp.ClientSession() as client:
            with pytest.raises(aiohttp.ClientPayloadError):
                async with client.post(f"{parrot}/cut", data=body) as response:
                    await response.read()
    with Tape.open(tape) as recorded:
        assert recorded.exchanges[0].end == "failed"
        assert recorded.exchanges[0].response_body == b"." + PLACEHOLDER


async def test_a_packed_body_with_a_secret_is_stored_unpacked(
    tape: Path, parrot: str, send: Send
) -> None:
    """A gzip body without a secret stays packed."""
    with record(tape):
        assert b"".join(await send("POST", f"{parrot}/gzip", content=BODY)) == BODY
        assert b"".join(await send("POST", f"{parrot}/gzip", content=b"none " * 9)) == b"none " * 9
    assert KEY.encode() not in everything_kept(tape.parent)
    with Tape.open(tape) as recorded:
        masked, packed = recorded.exchanges
        assert masked.response_body == BODY.replace(KEY.encode(), PLACEHOLDER)
        assert "content-encoding" not in dict(masked.response_headers)
        assert dict(packed.response_headers)["content-encoding"] == "gzip"
    with replay(tape):
        assert PLACEHOLDER in b"".join(await send("POST", f"{parrot}/gzip", content=BODY))
        assert b"".join(await send("POST", f"{parrot}/gzip", content=b"none " * 9)) == b"none " * 9


async def test_content_length_matches_the_masked_body(tape: Path, parrot: str, send: Send) -> None:
    """At replay, head and body must agree."""
    with record(tape):
        await send("POST", f"{parrot}/echo", content=BODY)
    with Tape.open(tape) as recorded:
        (exchange,) = recorded.exchanges
        length = dict(exchange.response_headers)["content-length"]
        assert int(length) == len(exchange.response_body) != len(BODY)
