"""However a program reads a body, a replay gives it the same, and no more than was recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError
from botocore.response import StreamingBody

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer
from tracefork_testkit.http1 import Delivery

from .conftest import HELLO, ByteServer, both, chunks, client_at

BODY = b'{"completion": "a line"}\n{"completion": "and one more"}\n' * 50
JSON = ("content-type", "application/json")


def read_parts(body: Any) -> Any:
    return [body.read(10), body.read(), body.tell()]


def read_into(body: Any) -> Any:
    buffer = bytearray(64)
    sizes = []
    while size := body.readinto(buffer):
        sizes.append(size)
    return sizes, bytes(buffer)


def read_after_a_timeout_is_set(body: Any) -> Any:
    body.set_socket_timeout(5)
    return body.read()


def read_only_some(body: Any) -> Any:
    head = body.read(100)
    body.close()
    return head


READERS: list[Callable[[Any], Any]] = [
    read_parts,
    read_after_a_timeout_is_set,
    read_only_some,
    lambda body: list(body.iter_chunks(chunk_size=500)),
    lambda body: list(body.iter_lines()),
    list,
    lambda body: body.readlines(),
    lambda body: json.loads(next(body.iter_lines())),
]
if hasattr(StreamingBody, "readinto"):
    READERS.append(read_into)


@pytest.mark.parametrize("framed", [False, True], ids=["length", "chunked"])
def test_a_body_is_read_as_it_was(framed: bool, tape: Path) -> None:
    """A program may read all of it or some of it; a body may have a length, or come in chunks."""
    pieces = [BODY[i : i + 333] for i in range(0, len(BODY), 333)]
    answers = [Delivery(200, [JSON], pieces, chunked=framed) for _ in READERS]
    with ByteServer(*answers) as server:
        client = client_at(server)

        def run() -> Any:
            read_so_far = []
            for number, read in enumerate(READERS):
                body = client.invoke_model(modelId=f"m{number}", body=b"{}")["body"]
                read_so_far.append(read(body))
                body.close()
            return read_so_far

        recorded, replayed = both(tape, run)
    assert all(recorded)
    for number, was in enumerate(recorded):
        assert replayed[number] == was, number


def test_a_body_that_is_shorter_than_it_says_is_so_again(tape: Path) -> None:
    """botocore compares the lengths itself."""
    with ByteServer(Delivery(200, [JSON], [b"{", b"}"], ending="truncate", sent=1)) as server:
        client = client_at(server)

        def run() -> Any:
            body = client.invoke_model(modelId="m", body=b"{}")["body"]
            try:
                return body.read()
            except BotoCoreError as error:
                return repr(error)
            finally:
                body.close()

        recorded, replayed = both(tape, run)
    assert "IncompleteRead" in recorded
    assert replayed == recorded


def events_of(client: Any, count: int | None = None) -> list[Any]:
    """Return the first events of a streamed answer, and close it."""
    stream = client.converse_stream(modelId="m", messages=HELLO)["stream"]
    try:
        return list(islice(stream, count))
    finally:
        stream.close()


def test_a_stream_can_be_left_early(server: ProviderServer, client: Any, tape: Path) -> None:
    """What was not read is not on the tape, and the replay does not miss it."""
    recorded, replayed = both(tape, lambda: events_of(client, 2))
    assert len(recorded) == 2
    assert replayed == recorded


def test_reading_past_an_abandoned_stream_is_a_divergence(
    server: ProviderServer, client: Any, tape: Path
) -> None:
    """The tape does not know the rest, and an end in its place would be a lie."""
    with tracefork.record(tape):
        events_of(client, 2)
    with (
        pytest.raises(tracefork.DivergenceError, match="further"),
        tracefork.replay(tape),
    ):
        events_of(client)


def test_a_stream_is_recorded_while_it_is_read(tape: Path) -> None:
    """An agent sees a word as soon as it has come: nothing waits for the end."""
    from tracefork_testkit import Hold, Reply

    hold = Hold(after_chunks=2)
    with ProviderServer([Reply("one two three four", hold=hold)]) as server:
        client = client_at(server)

        def run() -> list[Any]:
            stream = client.converse_stream(modelId="m", messages=HELLO)["stream"]
            first = next(iter(stream))
            hold.release()
            return [first, *stream]

        recorded, replayed = both(tape, run)
    assert replayed == recorded
    assert len(chunks(tape)[0]) > 2
