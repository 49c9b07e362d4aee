"""A delta gives its body back, whatever the body and the base are."""

from __future__ import annotations

import json
import random
from pathlib import Path

import httpx2
from hypothesis import example, given
from hypothesis import strategies as st

from tracefork_core import Tape, record
from tracefork_core.tape import delta
from tracefork_testkit import ProviderServer

PARTS = st.sampled_from([b'{"role":"user"}', b"\\n", b"\n", b"a" * 60, b"b" * 48, b"", b"\x00\xff"])
BODIES = st.one_of(st.binary(max_size=400), st.lists(PARTS, max_size=40).map(b"".join))


def applied(pieces: list[list[int]], new: bytes, base: bytes) -> bytes:
    """Make a body of a delta, as its definition says."""
    parts, place = [], 0
    for piece in pieces:
        if len(piece) == 1:
            parts.append(new[place : place + piece[0]])
            place += piece[0]
        else:
            parts.append(base[piece[0] : piece[0] + piece[1]])
    assert place == len(new)
    return b"".join(parts)


def check(data: bytes, base: bytes) -> list[list[int]]:
    """Fail unless a delta is well-formed and gives its body back."""
    pieces = delta.difference(data, base)
    new = delta.fresh(data, pieces)
    assert all(len(piece) in (1, 2) and piece[-1] > 0 and min(piece) >= 0 for piece in pieces)
    assert all(sum(piece) <= len(base) for piece in pieces if len(piece) == 2)
    assert sum(piece[-1] for piece in pieces) == len(data)
    assert len(new) + delta.copied(pieces) == len(data)
    assert applied(pieces, new, base) == data
    return pieces


@given(BODIES, BODIES)
@example(b"", b"")
@example(b"x", b"")
@example(b"ab" * 100, b"ab" * 99)
def test_a_delta_gives_its_body_back(data: bytes, base: bytes) -> None:
    """Any body against any other: whole pieces inside the base, and never more than the body."""
    check(data, base)


@given(BODIES, BODIES, BODIES)
def test_an_insertion_stores_only_the_inserted_bytes(
    head: bytes, middle: bytes, tail: bytes
) -> None:
    """A body that is its base with something put in stores no more than that, and short ends."""
    data, base = head + middle + tail, head + tail
    pieces = check(data, base)
    assert len(delta.fresh(data, pieces)) <= len(middle) + 2 * 48


def test_a_growing_transcript_stores_only_the_new_message() -> None:
    """Negative control for the bound: a body that has nothing in common is all new."""
    messages = [{"role": "user", "content": f"message {i} " * 20} for i in range(50)]
    base = json.dumps(messages[:-1]).encode()
    data = json.dumps(messages).encode()
    assert len(delta.fresh(data, check(data, base))) < 2 * len(json.dumps(messages[-1]))
    noise = random.Random(1).randbytes(len(base))
    assert delta.fresh(data, check(data, noise)) == data


def test_pieces_of_a_body_in_pieces_read(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """What is made of a thousand pieces of a body that is so itself is no bomb: it reads."""

    def listed(step: int) -> bytes:
        chance = random.Random(step)
        items = [
            {"same": {"text": f"piece {i}, " * 30}, "new": {"t": t, "at": "a place"}}
            for i, t in enumerate(chance.random() * 10**30 for _ in range(1000))
        ]
        return json.dumps(items).encode()

    with record(tape):
        for step in range(3):
            http.post(f"{provider.url}/status/201", content=listed(step))
    with Tape.open(tape) as recorded:
        assert recorded.exchanges[2].request_body == listed(2)
        blobs = [event for event in recorded.events if event.kind == "blob"]
        assert any(json.loads(bytes(event.aside)).get("base") for event in blobs)
